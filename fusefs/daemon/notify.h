/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the state of the daemon to the service manager (systemd, Type=notify): one datagram to
 * the socket in $NOTIFY_SOCKET; nothing without that variable. The protocol is that of
 * sd_notify(3), without libsystemd.
 */
#ifndef RMM_FUSEFS_NOTIFY_H
#define RMM_FUSEFS_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=..." */
void notify_manager(const char *message);

#endif /* RMM_FUSEFS_NOTIFY_H */
