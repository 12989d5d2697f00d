// SPDX-License-Identifier: BSD-2-Clause
/* Has the program begun to filter its system calls (seccomp)? From then on one of our calls could
 * be its death, and to ask the kernel would be one. So we look on as it asks for the filter:
 * programs do that by the C library's prctl or syscall, libseccomp as well. One that does it by an
 * instruction of its own gets no payment signals either (bpf/pay.h), but is not known here.
 *
 * The two functions jump on to the next library's with the caller's registers and stack, so that
 * nothing else changes for calls that return twice or have arguments on the stack. */
#include "libc.h"
#include "shim.h"

#include <stddef.h>

unsigned char shim_filtered;

/* Where to jump on to. Until the constructor has looked, and where there is none: the kernel. */
extern char shim_own_prctl[], shim_own_syscall[];
void *shim_next_prctl = shim_own_prctl, *shim_next_syscall = shim_own_syscall;

__asm__(".pushsection .text\n"
	".globl prctl\n"
	".type prctl, @function\n"
	"prctl:\n"
	".cfi_startproc\n"
	"	cmpl $22, %edi\n" /* PR_SET_SECCOMP */
	"	jne 1f\n"
	"	movb $1, shim_filtered(%rip)\n"
	"1:	jmp *shim_next_prctl(%rip)\n"
	".cfi_endproc\n"
	".size prctl, .-prctl\n"

	".globl syscall\n"
	".type syscall, @function\n"
	"syscall:\n"
	".cfi_startproc\n"
	"	cmpl $317, %edi\n" /* SYS_seccomp */
	"	je 1f\n"
	"	cmpl $157, %edi\n" /* SYS_prctl */
	"	jne 3f\n"
	"	cmpl $22, %esi\n"
	"	je 2f\n"
	"	jmp 3f\n"
	"1:	cmpl $1, %esi\n" /* SECCOMP_SET_MODE_FILTER; 0 is STRICT; others ask */
	"	ja 3f\n"
	"2:	movb $1, shim_filtered(%rip)\n"
	"3:	jmp *shim_next_syscall(%rip)\n"
	".cfi_endproc\n"
	".size syscall, .-syscall\n"

	".hidden shim_own_prctl\n"
	".type shim_own_prctl, @function\n"
	"shim_own_prctl:\n"
	".cfi_startproc\n"
	"	movl $157, %eax\n"
	"	movq %rcx, %r10\n"
	"	jmp 1f\n"
	".cfi_endproc\n"
	".size shim_own_prctl, .-shim_own_prctl\n"

	".hidden shim_own_syscall\n"
	".type shim_own_syscall, @function\n"
	"shim_own_syscall:\n"
	".cfi_startproc\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	movq %rdx, %rsi\n"
	"	movq %rcx, %rdx\n"
	"	movq %r8, %r10\n"
	"	movq %r9, %r8\n"
	"	movq 8(%rsp), %r9\n"
	"1:	syscall\n"
	"	cmpq $-4095, %rax\n"
	"	jae 2f\n"
	"	ret\n"
	"2:	movq %rax, %rdi\n"
	"	jmp shim_result\n"
	".cfi_endproc\n"
	".size shim_own_syscall, .-shim_own_syscall\n"
	".popsection\n");

void shim_filter_watch(void)
{
	void *prctl = next_function("prctl"), *syscall = next_function("syscall");

	if (prctl)
		__atomic_store_n(&shim_next_prctl, prctl, __ATOMIC_RELEASE);
	if (syscall)
		__atomic_store_n(&shim_next_syscall, syscall, __ATOMIC_RELEASE);
}
