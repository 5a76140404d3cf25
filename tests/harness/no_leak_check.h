/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs whose cases exit with memory held, or in a child that was forked beside
 * threads, where the leak checker of the sanitizers hangs. It asks this function, whatever
 * ASAN_OPTIONS says.
 */
#ifndef RMM_TESTS_HARNESS_NO_LEAK_CHECK_H
#define RMM_TESTS_HARNESS_NO_LEAK_CHECK_H

int __lsan_is_turned_off(void);

__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
    return 1;
}

#endif /* RMM_TESTS_HARNESS_NO_LEAK_CHECK_H */
