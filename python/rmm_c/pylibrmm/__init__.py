# SPDX-License-Identifier: Apache-2.0
"""The parts of the package under the names that they have in RMM."""
