/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about the node that several readers have open: who shares one, and who is charged. */
#include "harness/harness.h"

#include "session/node_texts.h"

#define USER 1000u

static uint64_t used_by(budget_t *budget, uid_t uid)
{
    budget_user_t user;
    for (uint32_t i = 0; budget_user_at(budget, i, &user); i++) {
        if (user.uid == uid) {
            return user.used[BUDGET_TEXT_BYTES];
        }
    }
    return 0;
}

typedef struct fixture {
    budget_t budget;
    node_texts_t texts;
} fixture_t;

static void begin(fixture_t *fixture)
{
    budget_init(&fixture->budget, 0);
    node_texts_init(&fixture->texts);
}

static void end(fixture_t *fixture)
{
    assert_int_equal(used_by(&fixture->budget, USER), 0);
    node_texts_fini(&fixture->texts);
    budget_fini(&fixture->budget);
}

static node_text_t *add(fixture_t *fixture, const node_text_key_t *key)
{
    static const char words[1000] = "rmm";
    node_text_t *text = node_text_new(key, &fixture->budget);
    assert_non_null(text);
    text_append(&text->text, words, sizeof(words));
    node_texts_add(&fixture->texts, text);
    return text;
}

TEST_CASE(readers_of_one_user_share_a_text_that_is_charged_once)
{
    const node_text_key_t key = {.snapshot_ns = 7, .file = 3, .uid = USER};
    node_text_t *held[64];
    fixture_t fixture;
    begin(&fixture);
    held[0] = add(&fixture, &key);
    uint64_t used = used_by(&fixture.budget, USER);
    assert_true(used >= 1000);
    for (uint32_t i = 1; i < 64; i++) {
        held[i] = node_texts_find(&fixture.texts, &key);
        assert_ptr_equal(held[i], held[0]);
    }
    assert_int_equal(used_by(&fixture.budget, USER), used);
    for (uint32_t i = 0; i < 63; i++) {
        node_texts_release(&fixture.texts, held[i]);
    }
    assert_int_equal(held[63]->text.length, 1000);
    node_texts_release(&fixture.texts, held[63]);
    assert_null(node_texts_find(&fixture.texts, &key));
    end(&fixture);
}

TEST_CASE(no_other_user_file_or_snapshot_gets_it)
{
    const node_text_key_t key = {.snapshot_ns = 7, .file = 3, .uid = USER};
    fixture_t fixture;
    begin(&fixture);
    node_text_t *text = add(&fixture, &key);
    node_text_key_t other = key;
    other.uid = USER + 1;
    assert_null(node_texts_find(&fixture.texts, &other));
    other = key;
    other.file = 4;
    assert_null(node_texts_find(&fixture.texts, &other));
    other = key;
    other.snapshot_ns = 8;
    assert_null(node_texts_find(&fixture.texts, &other));
    other = key;
    other.is_member = true;
    assert_null(node_texts_find(&fixture.texts, &other));
    node_texts_release(&fixture.texts, text);
    end(&fixture);
}

TEST_CASE(one_that_failed_is_released_without_having_been_added)
{
    const node_text_key_t key = {.snapshot_ns = 7, .file = 3, .uid = USER};
    fixture_t fixture;
    begin(&fixture);
    node_texts_release(&fixture.texts, node_text_new(&key, &fixture.budget));
    node_texts_release(&fixture.texts, NULL);
    assert_null(node_texts_find(&fixture.texts, &key));
    end(&fixture);
}
