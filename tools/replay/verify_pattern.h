/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that --verify writes into a block: shared by the kernels of the simulated
 * GPU (C) and of a real one (CUDA C).
 *
 * A block is a row of 8-byte words, the last one maybe cut. Word i of operation n holds
 * mix(n, i), so that neither another block's pattern nor the same block's, shifted, looks
 * right. Up to 64 KiB are written whole, more at PIECES places of PIECE_BYTES, the first
 * and last ones at the ends.
 */
#ifndef RMM_TOOLS_REPLAY_VERIFY_PATTERN_H
#define RMM_TOOLS_REPLAY_VERIFY_PATTERN_H

#include <stdint.h>

#ifdef __CUDACC__
#define VERIFY_FN static inline __host__ __device__
#else
#define VERIFY_FN static inline
#endif

#define VERIFY_WHOLE_BYTES UINT64_C(65536)
#define VERIFY_PIECE_BYTES UINT64_C(4096)
#define VERIFY_PIECES 8

/* Mismatches described one by one; the others are counted. */
#define VERIFY_SHOWN_MAX 8

typedef struct verify_mismatch {
    uint64_t op;      /* of the allocation */
    uint64_t address; /* of the block */
    uint64_t offset;  /* of the word */
    uint64_t expected;
    uint64_t found;
} verify_mismatch_t;

/* Kept where kernels can write it. */
typedef struct verify_report {
    unsigned long long count; /* words that did not match */
    verify_mismatch_t shown[VERIFY_SHOWN_MAX];
} verify_report_t;

/* The finaliser of splitmix64 over a sum that differs for each (op, word). */
VERIFY_FN uint64_t verify_word(uint64_t op, uint64_t word)
{
    uint64_t x = (op + 1) * UINT64_C(0x9e3779b97f4a7c15) + word;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

VERIFY_FN uint64_t verify_piece_count(uint64_t bytes)
{
    return bytes <= VERIFY_WHOLE_BYTES
               ? (bytes + VERIFY_PIECE_BYTES - 1) / VERIFY_PIECE_BYTES
               : VERIFY_PIECES;
}

/* Where a piece begins: a multiple of 8. The last one reaches the block's end. */
VERIFY_FN uint64_t verify_piece_begin(uint64_t bytes, uint64_t piece)
{
    if (bytes <= VERIFY_WHOLE_BYTES) {
        return piece * VERIFY_PIECE_BYTES;
    }
    uint64_t last = bytes - VERIFY_PIECE_BYTES;
    uint64_t begin =
        piece == VERIFY_PIECES - 1 ? last : last / (VERIFY_PIECES - 1) * piece;
    return begin & ~UINT64_C(7);
}

VERIFY_FN uint64_t verify_piece_end(uint64_t bytes, uint64_t piece)
{
    uint64_t end = verify_piece_begin(bytes, piece) + VERIFY_PIECE_BYTES;
    return piece + 1 == verify_piece_count(bytes) || end > bytes ? bytes : end;
}

/* The bits of a word that lie inside the block: all, or the low bytes of the last one. */
VERIFY_FN uint64_t verify_word_mask(uint64_t bytes, uint64_t word)
{
    uint64_t left = bytes - word * 8;
    return left >= 8 ? ~UINT64_C(0) : (UINT64_C(1) << (left * 8)) - 1;
}

#endif /* RMM_TOOLS_REPLAY_VERIFY_PATTERN_H */
