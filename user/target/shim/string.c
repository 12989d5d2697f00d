// SPDX-License-Identifier: BSD-2-Clause
/* The functions of string.h that the library uses, as the C standard, POSIX (strnlen, stpcpy) and
 * the compiler, which calls the first three by itself, have them. Those of the global scope may be
 * another preloaded library's. */
#include <stdbool.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	void *start = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	return start;
}

void *memset(void *to, int byte, size_t n)
{
	void *start = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
	return start;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

size_t strnlen(const char *text, size_t most)
{
	size_t n = 0;

	while (n < most && text[n])
		n++;
	return n;
}

size_t strlen(const char *text)
{
	return strnlen(text, (size_t)-1);
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n; a++, b++, n--)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, (size_t)-1);
}

/* In brackets: these two are macros as well since glibc 2.43. */
char *(strchr)(const char *text, int c)
{
	while (*text != (char)c)
		if (!*text++)
			return NULL;
	return (char *)(unsigned long)text;
}

/* Bytes at the begin of @text of which @set has all, or none. */
static size_t span(const char *text, const char *set, bool has)
{
	size_t n = 0;

	while (text[n] && (strchr(set, text[n]) != NULL) == has)
		n++;
	return n;
}

size_t strspn(const char *text, const char *set)
{
	return span(text, set, true);
}

size_t strcspn(const char *text, const char *set)
{
	return span(text, set, false);
}

char *(strstr)(const char *text, const char *wanted)
{
	size_t n = strlen(wanted);

	for (; strncmp(text, wanted, n) != 0; text++)
		if (!*text)
			return NULL;
	return (char *)(unsigned long)text;
}

char *stpcpy(char *restrict to, const char *restrict from)
{
	size_t n = strlen(from);

	(void)memcpy(to, from, n + 1);
	return to + n;
}
