/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of test_cxx_cccl.cpp, compiled by nvcc and run on a real GPU. */
#include "cxx/test_cxx_cccl.cpp"
