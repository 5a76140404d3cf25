/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of --quick; see quick.h. */
#include "run/quick.h"

bool run_quick_print(const run_report_t *report, bool is_only, FILE *out)
{
    bool has_looked = run_report_has_looked(report);
    bool is_clean =
        has_looked && report->findings_total == 0 && report->usage.leaked_count == 0;
    if (is_clean && is_only) {
        run_report_print_name(report, out);
        fprintf(out, ": no findings, no leaks (modes %s)\n", report->modes);
    }
    if (!has_looked && is_only) {
        return true; /* the run fails, and says why */
    }
    if (!is_clean && !run_report_print_title(report, out)) {
        return false;
    }
    if (has_looked) {
        run_report_print_findings(report, out);
        run_usage_print_leaks(&report->usage, out);
        if (!is_clean) {
            run_python_print_missing(&report->python, out);
        }
        if (!is_clean || is_only) {
            run_unseen_print(&report->unseen, out);
        }
    }
    return fflush(out) == 0 && ferror(out) == 0;
}
