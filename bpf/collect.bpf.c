// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Counts samples for `cozbpf collect`: which process, which image, which place in it. Nothing is
 * recorded for each sample, and nothing of the ledger is in here. After DCPI's interrupt handler
 * (Anderson et al., Continuous Profiling: Where Have All the Cycles Gone?, TOCS 1997, section 4.2):
 * a table of buckets for each CPU, where a full bucket gives one entry away. */
#include "bpf/namespace.h"
#include "shared/collect.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define ASK_AGAIN_NS 1000000000ULL
#define RING_BYTES (256 * 1024)
#define FUSE_SUPER_MAGIC 0x65735546 /* include/uapi/linux/magic.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Until Linux 6.6, and from there to 6.10. */
struct inode___i_mtime {
	struct timespec64 i_mtime;
};

struct inode___underlined {
	struct timespec64 __i_mtime;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff;
	struct file *vm_file;
};

#pragma clang attribute pop

const volatile unsigned int collect_scoped =
	0; /* only tasks below the control group in collect_scope */

unsigned int collect_half = 0; /* which of its two tables a CPU counts in */
struct collect_cpu collect_cpus[COLLECT_MAX_CPUS] = {};
unsigned int collect_next_image = COLLECT_FILES, collect_next_who = COLLECT_PROCESSES;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* two tables for each CPU: set before loading */
	__type(key, u32);
	__type(value, struct collect_bucket);
} collect_table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, COLLECT_MAX_IMAGES);
	__type(key, struct collect_file);
	__type(value, struct collect_image);
} collect_images SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, COLLECT_MAX_WHO);
	__type(key, struct collect_process);
	__type(value, u32);
} collect_whos SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} collect_evicted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024);
} collect_news SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} collect_scope SEC(".maps");

/* What bpf_find_vma() looks for, and finds. */
struct place {
	u64 ip, offset, vdso;
	u32 image; /* COLLECT_FILES: @file says which */
	u64 start, end;
	struct collect_file file;
	char name[COLLECT_NAME];
};

static __always_inline u64 changed_ns(struct inode *i)
{
	struct inode___i_mtime *older = (void *)i;
	struct inode___underlined *between = (void *)i;

	if (bpf_core_field_exists(i->i_mtime_sec))
		return (u64)BPF_CORE_READ(i, i_mtime_sec) * 1000000000 +
		       BPF_CORE_READ(i, i_mtime_nsec);
	if (bpf_core_field_exists(older->i_mtime))
		return (u64)BPF_CORE_READ(older, i_mtime.tv_sec) * 1000000000 +
		       (u64)BPF_CORE_READ(older, i_mtime.tv_nsec);
	return (u64)BPF_CORE_READ(between, __i_mtime.tv_sec) * 1000000000 +
	       (u64)BPF_CORE_READ(between, __i_mtime.tv_nsec);
}

static long found(struct task_struct *task, struct vm_area_struct *vma, struct place *p)
{
	struct file *file = vma->vm_file;
	struct inode *inode;

	p->start = vma->vm_start;
	p->end = vma->vm_end;
	if (!file) {
		p->image = p->start == p->vdso ? COLLECT_VDSO : COLLECT_ANONYMOUS;
		p->offset = p->image == COLLECT_VDSO ? p->ip - p->start : 0;
		return 0;
	}
	inode = BPF_CORE_READ(file, f_inode);
	p->image = COLLECT_FILES;
	p->offset = p->ip - p->start + (vma->vm_pgoff << 12);
	p->file.inode = BPF_CORE_READ(inode, i_ino);
	p->file.generation = BPF_CORE_READ(inode, i_generation);
	p->file.device = BPF_CORE_READ(inode, i_sb, s_dev);
	p->file.changed_ns = changed_ns(inode);
	p->file.owner = BPF_CORE_READ(inode, i_uid.val);
	p->file.is_fuse = BPF_CORE_READ(inode, i_sb, s_magic) == FUSE_SUPER_MAGIC;
	bpf_probe_read_kernel_str(p->name, sizeof(p->name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return 0;
}

/* Tells the controller of a process that has it mapped, so that it can look for the path. */
static __always_inline void tell(struct collect_image *i, const struct place *p, u32 pid, u64 now)
{
	struct collect_news n = {
		.image = i->id, .pid = pid, .start = p->start, .end = p->end, .file = p->file};

	__builtin_memcpy(n.name, p->name, sizeof(n.name));
	i->asked_ns = now;
	bpf_ringbuf_output(&collect_news, &n, sizeof(n), BPF_RB_FORCE_WAKEUP);
}

static __always_inline u32 image_of(const struct place *p, u32 pid)
{
	struct collect_image *i = bpf_map_lookup_elem(&collect_images, &p->file), made = {};
	u64 now;

	if (i && i->known)
		return i->id;
	now = bpf_ktime_get_ns();
	if (!i) {
		made.id = __sync_fetch_and_add(&collect_next_image, 1);
		made.known = p->file.is_fuse;
		__builtin_memcpy(made.name, p->name, sizeof(made.name));
		/* Of two CPUs that find it at once one is the first; the number of the other one is
		 * never used. */
		bpf_map_update_elem(&collect_images, &p->file, &made, BPF_NOEXIST);
		i = bpf_map_lookup_elem(&collect_images, &p->file);
		if (!i)
			return COLLECT_UNKNOWN; /* the table is full */
		if (i->id == made.id && !made.known)
			tell(i, p, pid, now);
	} else if (now > i->asked_ns + ASK_AGAIN_NS) {
		tell(i, p, pid, now);
	}
	return i->id;
}

static __always_inline u32 who_is(struct task_struct *task)
{
	struct collect_process p = {.cgroup = bpf_get_current_cgroup_id()};
	u32 *who, made;

	BPF_CORE_READ_STR_INTO(&p.name, task, group_leader, comm);
	who = bpf_map_lookup_elem(&collect_whos, &p);
	if (who)
		return *who;
	made = __sync_fetch_and_add(&collect_next_who, 1);
	bpf_map_update_elem(&collect_whos, &p, &made, BPF_NOEXIST);
	who = bpf_map_lookup_elem(&collect_whos, &p);
	return who ? *who : COLLECT_SOMEONE;
}

static __always_inline void evict(struct collect_cpu *c, struct collect_entry *e)
{
	/* The controller is woken in time, but not for each. */
	u64 flags = bpf_ringbuf_query(&collect_evicted, BPF_RB_AVAIL_DATA) > RING_BYTES / 2
			    ? BPF_RB_FORCE_WAKEUP
			    : BPF_RB_NO_WAKEUP;

	c->evicted++;
	if (bpf_ringbuf_output(&collect_evicted, e, sizeof(*e), flags) < 0)
		c->lost += e->count;
}

static __always_inline bool same(const struct collect_entry *a, const struct collect_entry *b)
{
	return a->offset == b->offset && a->image == b->image && a->who == b->who &&
	       a->event == b->event;
}

static __always_inline void count(struct collect_cpu *c, u32 cpu, const struct collect_entry *e)
{
	/* Multiplication by odd constants near the golden ratio's part of 2^64 and 2^32 (Knuth, The
	 * Art of Computer Programming, volume 3, section 6.4). */
	u64 hash = (e->offset ^ ((u64)e->image << 40) ^ ((u64)e->who << 20) ^ e->event) *
		   0x9e3779b97f4a7c15;
	u32 key = (2 * cpu + collect_half) * COLLECT_BUCKETS + (u32)(hash >> 32) % COLLECT_BUCKETS;
	struct collect_bucket *b = bpf_map_lookup_elem(&collect_table, &key);
	struct collect_entry *least = NULL;

	if (!b) {
		c->lost++;
		return;
	}
	for (int i = 0; i < COLLECT_WAYS; i++) {
		struct collect_entry *at = &b->ways[i];

		if (at->count && same(at, e)) {
			at->count++;
			c->hits++;
			return;
		}
		if (!least || at->count < least->count)
			least = at;
	}
	/* What comes often stays. */
	if (least->count)
		evict(c, least);
	*least = *e;
	least->count = 1;
}

/* An interrupt has a stack of its own; what it interrupted while it was on the task's stack is the
 * task's. */
static __always_inline bool in_interrupt(struct task_struct *task, u64 sp)
{
	u64 stack = (u64)BPF_CORE_READ(task, stack);

	return sp < stack || sp >= stack + THREAD_SIZE;
}

static __always_inline void sample(struct bpf_perf_event_data *ctx, struct collect_cpu *c, u32 cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct collect_entry e = {.offset = ctx->regs.ip, .event = (u32)bpf_get_attach_cookie(ctx)};
	struct place p = {.ip = ctx->regs.ip};
	u32 pid = task_process(task);

	/* What the machine does for others is not for those in a container to see. */
	if ((own_namespace.level && !pid) ||
	    (collect_scoped && bpf_current_task_under_cgroup(&collect_scope, 0) != 1)) {
		c->outside++;
		return;
	}
	if (!BPF_CORE_READ(task, pid)) {
		e.who = COLLECT_SWAPPER;
		e.image = in_interrupt(task, ctx->regs.sp) ? COLLECT_KERNEL : COLLECT_IDLE;
		if (e.image == COLLECT_IDLE)
			e.offset = 0;
		else
			e.who = COLLECT_INTERRUPTS;
	} else if (!(ctx->regs.cs & 3)) {
		e.image = COLLECT_KERNEL;
		e.who = in_interrupt(task, ctx->regs.sp) ? COLLECT_INTERRUPTS : who_is(task);
	} else {
		e.who = who_is(task);
		p.vdso = (u64)BPF_CORE_READ(task, mm, context.vdso);
		if (bpf_find_vma(task, p.ip, found, &p, 0) < 0) {
			c->unknown++;
			e.offset = 0;
		} else {
			e.image = p.image == COLLECT_FILES ? image_of(&p, pid) : p.image;
			e.offset = p.offset;
		}
	}
	count(c, cpu, &e);
}

SEC("perf_event")
int collect_tick(struct bpf_perf_event_data *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct collect_cpu *c;

	if (cpu >= COLLECT_MAX_CPUS)
		return 0;
	c = &collect_cpus[cpu];
	/* An exchange: the table is chosen after everyone can see that this CPU is in here. */
	(void)__sync_lock_test_and_set(&c->busy, 1);
	c->ticks++;
	sample(ctx, c, cpu);
	(void)__sync_lock_test_and_set(&c->busy, 0);
	return 0;
}
