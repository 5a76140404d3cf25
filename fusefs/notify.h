/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tell the service manager (systemd, Type=notify) how it goes: one datagram to the socket
 * in $NOTIFY_SOCKET. Nothing without that variable. The protocol is that of
 * sd_notify(3); libsystemd is not needed for it.
 */
#ifndef RMM_FUSEFS_NOTIFY_H
#define RMM_FUSEFS_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=..." */
void notify_manager(const char *message);

#endif /* RMM_FUSEFS_NOTIFY_H */
