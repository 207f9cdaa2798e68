"""A seccomp filter: system calls that no program under test needs, and that reach deep into the kernel.

The namespaces already keep a program in; this makes the kernel it can reach smaller, and closes ways to hold memory
that no limit of a process counts (memfd, System V shared memory, message queues). Numbers are of Linux's own tables:
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import Final

_X86_64: Final = {
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "msgget": 68, "ptrace": 101, "syslog": 103,
    "personality": 135, "pivot_root": 155, "chroot": 161, "acct": 163, "mount": 165, "umount2": 166, "swapon": 167,
    "swapoff": 168, "reboot": 169, "init_module": 175, "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212,
    "mbind": 237, "set_mempolicy": 238, "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249,
    "keyctl": 250, "migrate_pages": 256, "unshare": 272, "move_pages": 279, "vmsplice": 278, "perf_event_open": 298,
    "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "memfd_create": 319, "kexec_file_load": 320,
    "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
_AARCH64: Final = {
    "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "vmsplice": 75,
    "acct": 89, "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106,
    "syslog": 116, "ptrace": 117, "reboot": 142, "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194,
    "shmctl": 195, "shmat": 196, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225,
    "mbind": 235, "set_mempolicy": 237, "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241,
    "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "memfd_create": 279, "bpf": 280, "userfaultfd": 282,
    "kexec_file_load": 294, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438,
    "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
_CLONE3: Final = 435
_NEW_NAMESPACES: Final = 0x7E020080
"""Flags of clone(2) that make namespaces: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME."""
_AF_UNIX: Final = 1

# (audit architecture, calls denied, number of clone, of socket)
_MACHINES: Final = {
    "x86_64": (0xC000003E, _X86_64, 56, 41),
    "aarch64": (0xC00000B7, _AARCH64, 220, 198),
}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
"""Offsets in struct seccomp_data; arguments are 64 bits wide, their low half first on both machines."""


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def program(machine: str = platform.machine()) -> bytes | None:
    """The filter as an array of struct sock_filter, as bwrap --seccomp reads it; None for a machine without a table,
    where only the namespaces stand."""
    if machine not in _MACHINES:
        return None
    architecture, denied, clone, socket = _MACHINES[machine]

    def fails(error: int) -> bytes:
        return _instruction(_RETURN, _ERROR | error)

    parts = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_EQUAL, architecture, yes=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":  # x32's numbers begin here, and would pass the table by
        parts += [_instruction(_AT_LEAST, 0x40000000, no=1), _instruction(_RETURN, _KILL)]
    for number in sorted(denied.values()):
        parts += [_instruction(_EQUAL, number, no=1), fails(errno.EPERM)]
    # Its flags stand in memory, where no filter can read them. glibc takes clone where there is no clone3.
    parts += [_instruction(_EQUAL, _CLONE3, no=1), fails(errno.ENOSYS)]
    parts += [
        _instruction(_EQUAL, clone, no=4),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_ANY_BIT, _NEW_NAMESPACES, no=1),
        fails(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]
    parts += [
        _instruction(_EQUAL, socket, no=3),
        _instruction(_LOAD, _FIRST_ARGUMENT_AT),
        _instruction(_EQUAL, _AF_UNIX, yes=1),
        fails(errno.EAFNOSUPPORT),
    ]
    return b"".join([*parts, _instruction(_RETURN, _ALLOW)])
