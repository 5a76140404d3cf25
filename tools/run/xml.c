/* SPDX-License-Identifier: Apache-2.0 */
/* XML, element by element; see xml.h. */
#include "run/xml.h"

#include <inttypes.h>

#include "run/text.h"

/* NULL: it stands for itself. '>' is escaped because a text may have "]]>", line breaks in an
 * attribute because a reader would make spaces of them. */
static const char *escape_of(char character, bool is_attribute)
{
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\r':
        return "&#13;";
    case '\n':
        return is_attribute ? "&#10;" : NULL;
    case '\t':
        return is_attribute ? "&#9;" : NULL;
    default:
        return NULL;
    }
}

static void write_escaped(const char *text, bool is_attribute, FILE *out)
{
    while (*text != '\0') {
        const char *escape = escape_of(*text, is_attribute);
        size_t length = run_text_character(text);
        if (escape != NULL) {
            (void)fputs(escape, out);
        } else if (length == 0) {
            (void)fputc('?', out);
        } else {
            (void)fwrite(text, 1, length, out);
        }
        text += length > 0 ? length : 1;
    }
}

static void end_tag(xml_t *xml)
{
    if (xml->is_in_tag) {
        (void)fputc('>', xml->out);
        xml->is_in_tag = false;
    }
}

static void begin_line(const xml_t *xml)
{
    (void)fprintf(xml->out, "\n%*s", (int)(2 * xml->depth), "");
}

void xml_begin(xml_t *xml, FILE *out)
{
    *xml = (xml_t){.out = out};
    (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", out);
}

void xml_open(xml_t *xml, const char *element)
{
    end_tag(xml);
    begin_line(xml);
    (void)fprintf(xml->out, "<%s", element);
    xml->depth++;
    xml->is_in_tag = true;
    xml->has_text = false;
}

void xml_attribute(xml_t *xml, const char *name, const char *value)
{
    (void)fprintf(xml->out, " %s=\"", name);
    write_escaped(value, true, xml->out);
    (void)fputc('"', xml->out);
}

void xml_count(xml_t *xml, const char *name, uint64_t value)
{
    (void)fprintf(xml->out, " %s=\"%" PRIu64 "\"", name, value);
}

void xml_text(xml_t *xml, const char *text)
{
    end_tag(xml);
    write_escaped(text, false, xml->out);
    xml->has_text = true;
}

void xml_close(xml_t *xml, const char *element)
{
    xml->depth--;
    if (xml->is_in_tag) {
        (void)fputs("/>", xml->out);
    } else {
        if (!xml->has_text) {
            begin_line(xml);
        }
        (void)fprintf(xml->out, "</%s>", element);
    }
    xml->is_in_tag = false;
    xml->has_text = false;
    if (xml->depth == 0) {
        (void)fputc('\n', xml->out);
    }
}
