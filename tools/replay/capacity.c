/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See capacity.h. Capacities are counted in granules above the lower bound, so that no
 * rounding creeps in.
 */
#include "replay/capacity.h"

#define PARTS_OF_PEAK 1000
#define UPPER_FACTOR 4

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + CAPACITY_UNIT - 1) / CAPACITY_UNIT * CAPACITY_UNIT;
}

uint64_t capacity_granularity(uint64_t peak_bytes)
{
    uint64_t granule = peak_bytes / PARTS_OF_PEAK / CAPACITY_UNIT * CAPACITY_UNIT;
    return granule > CAPACITY_UNIT ? granule : CAPACITY_UNIT;
}

capacity_result_t capacity_search(
    uint64_t peak_bytes, capacity_trial_fn trial, void *context, uint64_t *found)
{
    uint64_t base = peak_bytes > 0 ? round_up(peak_bytes) : CAPACITY_UNIT;
    uint64_t granule = capacity_granularity(peak_bytes);
    uint64_t last = base * (UPPER_FACTOR - 1) / granule;
    uint64_t low = 0; /* all granule counts below do not fit, as far as was tried */
    uint64_t high = 0;

    for (uint64_t step = 1;; step *= 2) {
        capacity_trial_t answer = trial(context, base + high * granule);
        if (answer == CAPACITY_TRIAL_FAILED) {
            return CAPACITY_STOPPED;
        }
        if (answer == CAPACITY_FITS) {
            break;
        }
        if (high == last) {
            return CAPACITY_NOT_FOUND;
        }
        low = high + 1;
        high = high + step < last ? high + step : last;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        capacity_trial_t answer = trial(context, base + middle * granule);
        if (answer == CAPACITY_TRIAL_FAILED) {
            return CAPACITY_STOPPED;
        }
        if (answer == CAPACITY_FITS) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *found = base + high * granule;
    return CAPACITY_FOUND;
}

static uint64_t hundredths_of(uint64_t peak_bytes, unsigned hundredths)
{
    uint64_t bytes = peak_bytes / 100 * hundredths;
    bytes += (peak_bytes % 100 * hundredths + 99) / 100;
    return bytes > 0 ? round_up(bytes) : CAPACITY_UNIT;
}

bool capacity_curve_measure(
    uint64_t peak_bytes, capacity_trial_fn trial, void *context,
    capacity_curve_t *curve)
{
    capacity_curve_t measured;
    for (unsigned i = 0; i < CAPACITY_CURVE_COUNT; i++) {
        measured.bytes[i] = hundredths_of(peak_bytes, 100 + i);
        capacity_trial_t answer = trial(context, measured.bytes[i]);
        if (answer == CAPACITY_TRIAL_FAILED) {
            return false;
        }
        measured.fits[i] = answer == CAPACITY_FITS;
    }
    *curve = measured;
    return true;
}

unsigned capacity_curve_safe(const capacity_curve_t *curve)
{
    unsigned first = CAPACITY_CURVE_COUNT;
    while (first > 0 && curve->fits[first - 1]) {
        first--;
    }
    return first < CAPACITY_CURVE_COUNT ? 100 + first : 0;
}

unsigned capacity_curve_holes(const capacity_curve_t *curve)
{
    unsigned holes = 0;
    bool fitted = false;
    for (unsigned i = 0; i < CAPACITY_CURVE_COUNT; i++) {
        fitted = fitted || curve->fits[i];
        holes += fitted && !curve->fits[i];
    }
    return holes;
}
