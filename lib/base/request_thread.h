/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of rmm/request_thread.h, seen from resources.
 */
#ifndef RMM_BASE_REQUEST_THREAD_H
#define RMM_BASE_REQUEST_THREAD_H

/* A resource was created, so what operators write can be read: starts the thread if it is wanted.
 * No lock held by the caller. */
void rmm__request_thread_use(void);

#endif /* RMM_BASE_REQUEST_THREAD_H */
