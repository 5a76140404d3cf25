# SPDX-License-Identifier: Apache-2.0
"""Allocators for other packages, a module for each: cupy, numba, torch."""
