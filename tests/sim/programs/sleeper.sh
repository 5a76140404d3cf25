#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says its pid and sleeps, as a program that only a signal ends.
echo $$
exec sleep 100
