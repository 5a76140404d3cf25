/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A diagnosis library as CUDA_INJECTION64_PATH names one: it calls back into the program
 * that loads it.
 */
void test_reenter(void); /* of test_sim_inject.c */
int InitializeInjection(void);

int InitializeInjection(void)
{
    test_reenter();
    return 1;
}
