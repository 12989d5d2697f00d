// SPDX-License-Identifier: BSD-2-Clause
// The part of attributed.c that is in C++: templates of the library, which are the library's lines wherever they end up, and
// functions of libstdc++, some of which call the C library in turn.
#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define KEEP __attribute__((noinline))

extern "C" {
void sort_vector(const int *numbers, int n);
void fill_map(const int *numbers, int n);
void write_stream();
void build_strings();
void throw_and_catch();
}

static volatile long sink;

KEEP void sort_vector(const int *numbers, int n)
{
	std::vector<int> v(numbers, numbers + n);

	std::sort(v.begin(), v.end());
	sink = v[0];
}

KEEP void fill_map(const int *numbers, int n)
{
	std::map<int, int> m;

	for (int i = 0; i < n; i += 2)
		m[numbers[i]] = i;
	sink = static_cast<long>(m.size());
}

KEEP void write_stream()
{
	std::ostringstream out;

	for (int i = 0; i < 600; i++)
		out << i * 0.37 << ' ';
	sink = static_cast<long>(out.str().size());
}

KEEP void build_strings()
{
	std::string all;

	for (int i = 0; i < 6000; i++)
		all += std::to_string(i * 7919);
	sink = static_cast<long>(all.size());
}

static KEEP void thrower(int i)
{
	if (i >= 0)
		throw std::runtime_error("some");
}

KEEP void throw_and_catch()
{
	for (int i = 0; i < 150; i++) {
		try {
			thrower(i);
		} catch (const std::exception &e) {
			sink = e.what()[0];
		}
	}
}
