/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is no tool: it exports nothing that NVTX looks for. */
int nvtx_no_tool(void);

int nvtx_no_tool(void)
{
    return 0;
}
