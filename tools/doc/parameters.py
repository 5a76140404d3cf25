# SPDX-License-Identifier: Apache-2.0
"""
Parameters whose name says what they are, everywhere in the API. Comments in the headers document
those that need more; the texts here are for the rest. A key is NAME, or PREFIX:NAME for functions
whose name begins so; the longest prefix wins. reference.py refuses a key that nothing uses.
"""

OF_A_CONTAINER = "the resource that the memory comes from; NULL: the current device's default"

TEXTS = {
    "a": "a resource",
    "ability": "what is asked for: one of RMM_ABILITY_*",
    "align": "a power of two, at most RMM_ALIGN_MAX; 0 means RMM_ALIGN_DEFAULT",
    "rmm_device_buffer:align": "as rmm_device_buffer_init_aligned()",
    "rmm_device_scalar:align": "as rmm_device_buffer_init_aligned()",
    "arg": "passed to the function; borrowed",
    "array": "the array",
    "b": "another resource",
    "blocks": "from rmm_tracking_outstanding(); NULL is ignored",
    "buffer": "the buffer",
    "buffer_out": "receives the buffer",
    "bytes": "size in bytes",
    "bytes_out": "receives the number of bytes; untouched on failure",
    "capacity": "number of elements that fit then, at least",
    "capacity_bytes": "number of bytes that fit then, at least",
    "count": "number of elements",
    "count_out": "receives the number; untouched on failure",
    "data": "the pointer; NULL removes it",
    "device": "a device, by its CUDA ordinal",
    "device_out": "receives the device's ordinal; untouched on failure",
    "dst": "the destination",
    "element_bytes": "size of an element in bytes",
    "event": "an event of rmm_sim_event_create()",
    "figure": "a difference of two figures, as rmm_statistics_get() and the like give it",
    "first": "number of the first element, from 0",
    "fn": "the function",
    "format": "as rmm_logging_options_t has it",
    "free_bytes_out": "receives the free bytes; untouched on failure",
    "graph": "a graph of rmm_sim_end_capture()",
    "graph_out": "receives the graph",
    "host": "memory of the host",
    "index": "number of the element, from 0",
    "rmm_stream_pool_get_at:index": "any number: it counts modulo the size of the pool",
    "is_out": "receives the answer; untouched on failure",
    "keep_bytes": "how much it may keep",
    "level": "a level",
    "mr": "the resource",
    "rmm_device_array:mr": OF_A_CONTAINER,
    "rmm_device_buffer:mr": OF_A_CONTAINER,
    "rmm_device_scalar:mr": OF_A_CONTAINER,
    "mr_or_NULL": "the new default resource; NULL: the initial one",
    "offset": "where in the buffer, in bytes",
    "out": "receives the result; untouched on failure",
    "param_bytes": "size of each value, in bytes",
    "param_count": "number of parameters",
    "path": "name of the file",
    "pool": "the stream pool",
    "previous_out_or_NULL": "receives the previous default resource, retained; NULL: not wanted",
    "ptr": "the block",
    "rmm_memset_async:ptr": "the memory",
    "ptr_out": "receives the address on success; untouched on failure",
    "scalar": "the scalar",
    "scope": "of rmm_device_scope_enter()",
    "spec": "as rmm_resource_create_from_spec()",
    "src": "the source",
    "status": "a status",
    "stream": "the stream in whose order it works",
    "rmm_stream_:stream": "the stream",
    "rmm_device_array_set_stream:stream": "the stream of later operations, and of the free",
    "rmm_device_buffer_set_stream:stream": "the stream of later operations, and of the free",
    "total_bytes_out": "receives the bytes of the device; untouched on failure",
    "upstream": "the resource that it allocates from, retained",
    "value": "address of the value",
    "rmm_sim_memset_async:value": "of each byte; its low 8 bits count",
    "value_bytes": "size of the value in bytes",
    "value_out": "receives the value",
}


def text_of(function, name, used):
    """The text, or None. Adds the key to `used`."""
    keys = [key for key in TEXTS if ":" in key and key.split(":")[1] == name]
    keys = [key for key in keys if function.startswith(key.split(":")[0])]
    key = max(keys, key=len, default=name)
    if key not in TEXTS:
        return None
    used.add(key)
    return TEXTS[key]
