/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories of figures: what a sample is, what is left out, and who fills those of devices and
 * jobs.
 */
#include "model_fixture.h"

#include "model/history.h"
#include "model/jobs.h"
#include "model/marks.h"

static void
assert_samples(const history_t *history, const float *expected, uint32_t count)
{
    float samples[HISTORY_SAMPLES];
    assert_int_equal(history_copy(history, samples), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(samples[i] == expected[i]);
    }
}

TEST_CASE(a_sample_is_the_highest_of_its_step)
{
    static history_t history;
    history_see(&history, 5);
    history_see(&history, 9);
    history_see(&history, 7);
    history_step(&history);
    history_see(&history, 0);
    history_step(&history);
    assert_samples(&history, (const float[]){9, 0}, 2);
}

TEST_CASE(a_step_that_nobody_saw_has_no_sample)
{
    static history_t history;
    history_step(&history);
    history_see(&history, FIGURE_UNKNOWN);
    history_step(&history);
    history_see(&history, 3);
    history_step(&history);
    assert_samples(&history, (const float[]){HISTORY_MISSING, HISTORY_MISSING, 3}, 3);
}

TEST_CASE(the_oldest_samples_leave_first)
{
    static history_t history;
    float expected[HISTORY_SAMPLES];
    for (uint32_t i = 0; i < HISTORY_SAMPLES + 50; i++) {
        history_see(&history, i);
        history_step(&history);
    }
    for (uint32_t i = 0; i < HISTORY_SAMPLES; i++) {
        expected[i] = (float)(50 + i);
    }
    assert_samples(&history, expected, HISTORY_SAMPLES);
}

TEST_CASE(looks_fill_the_histories_of_devices_and_jobs)
{
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    cgroup_t group;
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    location->current_bytes = 100;
    location->reserved_bytes = 300;
    member_t *member = fixture_process(fixture, 7);
    cgroup_parse("0::/slurm/uid_0/job_5/step_0\n", &group);
    jobs_put(model, member->process, &group);
    marks_take(model);
    marks_step_histories(model);
    marks_step_histories(model);
    const float used[] = {100, HISTORY_MISSING}, held[] = {300, HISTORY_MISSING};
    assert_samples(&model->gpus[0].current_history, used, 2);
    assert_samples(&model->gpus[0].reserved_history, held, 2);
    assert_int_equal(model->jobs.count, 3);
    for (uint32_t i = 0; i < model->jobs.count; i++) {
        const job_t *job = jobs_find(&model->jobs, model->jobs.items[i]->serial);
        assert_ptr_equal(job, model->jobs.items[i]);
        assert_samples(&job->history, used, 2);
    }
    assert_null(jobs_find(&model->jobs, 99));
    end_fixture(fixture);
}
