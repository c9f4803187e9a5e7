"""Asks the CUDA driver which GPUs this process may use, and prints them as one JSON array.

`papercuts.hardware` runs this file in a process of its own, without torch: initialising CUDA in
the caller would break its later forks, and a driver that hangs must not hang the caller. The driver
itself applies CUDA_VISIBLE_DEVICES and MIG, so its order is the order of torch's `cuda:N`.
"""

from __future__ import annotations

import ctypes
import json
import sys

# CUdevice_attribute numbers, from the CUDA driver API's reference.
_MAJOR, _MINOR = 75, 76


def query(driver: ctypes.CDLL) -> list[dict[str, str | int]]:
    """List index, name, memory_bytes and capability of every device that `driver` shows."""
    count = ctypes.c_int()
    # Any error number, such as "no device", means that no GPU can be used.
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    return [_device(driver, index) for index in range(count.value)]


def _device(driver: ctypes.CDLL, index: int) -> dict[str, str | int]:
    handle, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    memory = ctypes.c_size_t()
    name = ctypes.create_string_buffer(256)
    driver.cuDeviceGet(ctypes.byref(handle), index)
    driver.cuDeviceGetName(name, len(name), handle)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, handle)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, handle)
    return {
        "index": index,
        "name": name.value.decode(errors="replace"),
        "memory_bytes": memory.value,
        "capability": f"{major.value}.{minor.value}",
    }


def main() -> None:
    """Print what the driver says, or an empty array where there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        devices = []
    else:
        devices = query(driver)
    json.dump(devices, sys.stdout)


if __name__ == "__main__":
    main()
