/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The few kernel types in use, written by hand; offsets come from the running kernel's BTF (CO-RE).
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* From the BPF uapi: helpers' headers name them. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

#define SIGNAL_GROUP_EXIT 4	/* all threads of the process end */
#define THREAD_SIZE (16 * 1024) /* of a kernel stack: x86-64 without KASAN */

enum pid_type { PIDTYPE_PID = 0, PIDTYPE_TGID = 1 };
/* task_struct.flags (include/linux/sched.h): do_exit() has begun; a thread of the kernel's; of a
 * process, but never in user mode: io_uring's, or another subsystem's (6.4). */
enum {
	PF_EXITING = 4,
	PF_IO_WORKER = 0x10,
	PF_WQ_WORKER = 0x20,
	PF_USER_WORKER = 0x4000,
	PF_KTHREAD = 0x200000
};

/* x86-64's calls that wait for a time, or for a time at most
 * (arch/x86/entry/syscalls/syscall_64.tbl). */
enum {
	SYS_POLL = 7,
	SYS_SELECT = 23,
	SYS_NANOSLEEP = 35,
	SYS_RT_SIGTIMEDWAIT = 128,
	SYS_FUTEX = 202,
	SYS_CLOCK_NANOSLEEP = 230,
	SYS_EPOLL_WAIT = 232,
	SYS_PSELECT6 = 270,
	SYS_PPOLL = 271,
	SYS_EPOLL_PWAIT = 281,
	SYS_EPOLL_PWAIT2 = 441
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long bp;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long flags;
	unsigned long sp;
};

struct trace_event_raw_sys_enter {
	long id;
};

struct trace_event_raw_sys_exit {
	long id;
};

struct thread_info {
	unsigned long flags;
	u32 cpu;
};

typedef struct {
	int counter;
} atomic_t;

struct rlimit {
	unsigned long rlim_cur;
};

/* Indices of signal_struct.rlim: CPU time of the process in s, of a real-time thread in us. */
enum { RLIMIT_CPU = 0, RLIMIT_RTTIME = 15 };

struct pid;

struct signal_struct {
	atomic_t live;	     /* threads that have not begun to exit */
	struct pid *pids[4]; /* by pid_type; NULL when the process has been waited for */
	unsigned int flags;  /* SIGNAL_GROUP_EXIT: a thread ends all of the process */
	struct rlimit rlim[16];
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct ns_common {
	unsigned int inum; /* the inode of /proc/PID/ns/pid */
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;    /* of the innermost PID namespace that it is in; 0: the first one */
	struct upid numbers[]; /* level + 1 of them */
};

struct seccomp {
	int mode; /* 0: the task may make all system calls. Without CONFIG_SECCOMP there is no such
		     field */
};

typedef s64 time64_t;

struct timespec64 {
	time64_t tv_sec;
	long tv_nsec;
};

struct timens_offsets {
	struct timespec64 monotonic;
};

struct time_namespace {
	struct timens_offsets offsets;
};

struct nsproxy {
	struct time_namespace *time_ns;
};

struct uprobe_task {
	void *active_uprobe;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

typedef struct {
	u32 val;
} kuid_t;

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	long long i_size;
	u32 i_generation;
	kuid_t i_uid;
	time64_t i_mtime_sec; /* since Linux 6.11 */
	u32 i_mtime_nsec;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
};

typedef struct {
	void *vdso;
} mm_context_t;

struct mm_struct {
	unsigned long start_code;
	struct file *exe_file;
	mm_context_t context;
};

struct thread_struct {
	unsigned long fsbase;
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int flags;
	struct mm_struct *mm;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	char comm[16];
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	sigset_t blocked;
	struct pid *thread_pid;
	struct nsproxy *nsproxy;
	struct seccomp seccomp;
	struct uprobe_task *utask;
	unsigned in_iowait : 1;
	struct thread_struct thread;
};

/* Never looked into; but libbpf compares a callback's type with the kernel's, and a mere
 * declaration does not match. */
struct bpf_map {
	u32 id;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>

/* Every object has it: without, the kernel refuses many of its functions. */
char LICENSE[] __weak SEC("license") = "Dual BSD/GPL";

extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type,
				u64 value) __ksym __weak; /* 6.13 */
extern struct task_struct *
bpf_task_from_pid(s32 pid) __ksym __weak; /* 6.2; in perf_event programs later */
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

/* The context of a perf_event program: uapi, so a fixed layout. */
struct user_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
};

struct bpf_perf_event_data {
	struct user_regs regs;
	__u64 sample_period;
	__u64 addr;
};

struct bpf_task_work {
	__u64 __opaque;
} __attribute__((aligned(8)));
