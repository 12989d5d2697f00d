// SPDX-License-Identifier: BSD-2-Clause
/* A library that a user preloads; its symbol tells that it was. */
void marker_of_the_tests(void);

void marker_of_the_tests(void)
{
}
