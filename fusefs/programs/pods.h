/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Kubernetes' pods. Control groups have the uid alone; kubelet makes a folder for the
 * logs of each pod on its node, /var/log/pods/NAMESPACE_NAME_UID, before its containers start. The
 * daemon asks no API server. Without that folder, or in a container that does not see it, pods have
 * their uid and no name.
 *
 * Threads: the background thread, without the model's lock: the folder may be slow.
 */
#ifndef RMM_FUSEFS_PODS_H
#define RMM_FUSEFS_PODS_H

#include <stdbool.h>

#include "model/model.h"

#define PODS_PATH "/var/log/pods"

/* "NAMESPACE_NAME_UID". False: it is no such name, or of another pod. */
bool pods_parse(const char *entry, const char *uid, char pod[JOB_POD_BYTES]);

/* Look for the names of pods that are new, each once. */
void pods_name(model_t *model);

#endif /* RMM_FUSEFS_PODS_H */
