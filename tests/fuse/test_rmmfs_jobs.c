/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of the model: who is in which, how many there may be, and when they leave.
 */
#include "model_fixture.h"

#include <string.h>

#include "model/jobs.h"
#include "model/marks.h"

static cgroup_t group_of(const char *path)
{
    char text[256];
    cgroup_t group;
    snprintf(text, sizeof(text), "0::%s\n", path);
    cgroup_parse(text, &group);
    return group;
}

static void put(fixture_t *fixture, member_t *member, const char *path)
{
    cgroup_t group = group_of(path);
    jobs_put(&fixture->model, member->process, &group);
}

static const job_t *
job_of(const fixture_t *fixture, job_kind_t kind, uid_t uid, const char *name)
{
    for (uint32_t i = 0; i < fixture->model.jobs.count; i++) {
        const job_t *job = fixture->model.jobs.items[i];
        if (job->kind == kind && job->uid == uid && strcmp(job->name, name) == 0) {
            return job;
        }
    }
    return NULL;
}

static void end(fixture_t *fixture, member_t *member)
{
    member->state = MEMBER_EXITED;
    jobs_leave_ended(&fixture->model, member->process);
}

static member_t *holder_of(fixture_t *fixture, pid_t pid, uint64_t bytes)
{
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    location->current_bytes = bytes;
    location->peak_bytes = location->lifetime_peak_bytes = bytes;
    return fixture_process(fixture, pid);
}

TEST_CASE(a_process_is_in_one_job_of_each_kind)
{
    fixture_t *fixture = open_fixture();
    member_t *member = holder_of(fixture, 7, 100);
    put(fixture, member, "/system.slice/slurmstepd.scope/job_5/step_batch/user");
    assert_int_equal(fixture->model.jobs.count, 3);
    assert_int_equal(job_of(fixture, JOB_SLURM_JOB, 0, "5")->processes, 1);
    assert_int_equal(job_of(fixture, JOB_SLURM_STEP, 0, "5.batch")->processes, 1);
    assert_int_equal(job_of(fixture, JOB_USER, 0, "0")->processes, 1);
    end_fixture(fixture);
}

TEST_CASE(processes_of_two_users_are_in_no_job_together)
{
    fixture_t *fixture = open_fixture();
    member_t *mine = holder_of(fixture, 7, 100), *forger = holder_of(fixture, 8, 900);
    forger->process->uid = 1000;
    put(fixture, mine, "/slurm/uid_0/job_5/step_0");
    put(fixture, forger, "/slurm/uid_0/job_5/step_0");
    marks_take(&fixture->model);
    assert_int_equal(job_of(fixture, JOB_SLURM_JOB, 0, "5")->peak_bytes, 100);
    assert_int_equal(job_of(fixture, JOB_SLURM_JOB, 1000, "5")->peak_bytes, 900);
    end_fixture(fixture);
}

TEST_CASE(a_peak_is_that_of_processes_that_ran_together)
{
    fixture_t *fixture = open_fixture();
    member_t *first = holder_of(fixture, 7, 100);
    put(fixture, first, "/a.service");
    marks_take(&fixture->model);
    end(fixture, first);
    member_t *second = holder_of(fixture, 8, 250), *third = holder_of(fixture, 9, 30);
    put(fixture, second, "/a.service");
    marks_take(&fixture->model);
    const job_t *job = job_of(fixture, JOB_UNIT, 0, "a.service");
    assert_int_equal(job->peak_bytes, 250);
    put(fixture, third, "/a.service");
    marks_take(&fixture->model);
    assert_int_equal(job->peak_bytes, 280);
    end(fixture, third);
    marks_take(&fixture->model);
    assert_int_equal(job->peak_bytes, 280);
    end_fixture(fixture);
}

TEST_CASE(a_process_that_moves_leaves_its_job)
{
    fixture_t *fixture = open_fixture();
    member_t *member = holder_of(fixture, 7, 100);
    put(fixture, member, "/a.service");
    jobs_put(&fixture->model, member->process, NULL); /* unknown this time */
    assert_int_equal(job_of(fixture, JOB_UNIT, 0, "a.service")->processes, 1);
    put(fixture, member, "/b.service");
    assert_int_equal(job_of(fixture, JOB_UNIT, 0, "a.service")->processes, 0);
    assert_int_not_equal(job_of(fixture, JOB_UNIT, 0, "a.service")->ended_ns, 0);
    assert_int_equal(job_of(fixture, JOB_UNIT, 0, "b.service")->processes, 1);
    assert_int_equal(job_of(fixture, JOB_USER, 0, "0")->processes, 1);
    assert_int_equal(job_of(fixture, JOB_USER, 0, "0")->ended_ns, 0);
    put(fixture, member, "/a.service");
    assert_int_equal(job_of(fixture, JOB_UNIT, 0, "a.service")->ended_ns, 0);
    end_fixture(fixture);
}

TEST_CASE(a_job_that_ended_leaves_after_ten_minutes)
{
    fixture_t *fixture = open_fixture();
    member_t *member = holder_of(fixture, 7, 100), *other = holder_of(fixture, 8, 1);
    put(fixture, member, "/a.service");
    put(fixture, other, "/b.service");
    end(fixture, member);
    jobs_expire(&fixture->model);
    assert_non_null(job_of(fixture, JOB_UNIT, 0, "a.service"));
    for (uint32_t i = 0; i < fixture->model.jobs.count; i++) {
        job_t *job = fixture->model.jobs.items[i];
        job->ended_ns -= job->ended_ns != 0 ? JOBS_ENDED_SHOWN_NS : 0;
    }
    jobs_expire(&fixture->model);
    assert_null(job_of(fixture, JOB_UNIT, 0, "a.service"));
    assert_non_null(job_of(fixture, JOB_UNIT, 0, "b.service"));
    end_fixture(fixture);
}

/* One process that goes from group to group, as any user can. */
TEST_CASE(the_jobs_of_a_user_are_limited)
{
    fixture_t *fixture = open_fixture();
    member_t *member = holder_of(fixture, 7, 100);
    char path[64];
    for (int i = 0; i < 2000; i++) {
        snprintf(path, sizeof(path), "/%d.service", i);
        put(fixture, member, path);
    }
    assert_int_equal(fixture->model.jobs.count, JOBS_ENDED_OF_USER + 2);
    assert_null(job_of(fixture, JOB_UNIT, 0, "0.service")); /* the oldest left */
    assert_non_null(job_of(fixture, JOB_UNIT, 0, "1999.service"));
    static process_t many[1200];
    for (int i = 0; i < 1200; i++) {
        snprintf(path, sizeof(path), "/live%d.service", i);
        cgroup_t group = group_of(path);
        jobs_put(&fixture->model, &many[i], &group);
    }
    assert_int_equal(fixture->model.jobs.count, JOBS_OF_USER);
    member_t *other = holder_of(fixture, 8, 1);
    other->process->uid = 1000;
    put(fixture, other, "/a.service");
    assert_non_null(job_of(fixture, JOB_UNIT, 1000, "a.service"));
    for (int i = 0; i < 1200; i++) {
        placement_release(many[i].placement);
    }
    end_fixture(fixture);
}
