# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# What a guest boots into, sourced: one archive with a bare tree and the build, which the kernel unpacks into memory. So it takes no module of
# any kernel, and one archive does for all. Programs and libraries are this machine's, at their paths, since the build is linked to them.
: "${cache:?the directory for what is kept}" "${SRC:?the source directory}" "${BUILD:?the build directory}"

# What the tests in the guest call.
guest_packages=(bash coreutils procps util-linux mount grep sed findutils mawk bpftool hostname dash diffutils)

# Copies files, at their paths, and what they link to.
copy_in() { # ROOT FILE...
	local root=$1 file
	shift
	for file; do
		[ -e "$root$file" ] && continue
		mkdir -p "$root${file%/*}"
		cp -L -- "$file" "$root$file" || return
	done
}

libraries_of() { # FILE...
	ldd "$@" 2>/dev/null | sed -nE 's%^\t(.* => )?(/[^ ]+) \(0x.*%\2%p' | sort -u
}

# Programs of packages. The directories of the file system's root are links in the guest, as in Debian.
system_files() {
	local package file
	for package in "${guest_packages[@]}"; do
		dpkg -L "$package" 2>/dev/null | grep -E '^(/usr)?/s?bin/' | while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
	done
	python3 -c 'import os, sys; print(os.path.realpath(sys.executable))'
	# The C library loads this one when a thread is cancelled or ends.
	printf '/lib/x86_64-linux-gnu/libgcc_s.so.1\n'
}

# The executables of the build that the guest runs, the sources in which they look for lines, and what ask.py reads.
tree_files() {
	printf '%s\n' "$COZBPF"
	find "$BUILD/tests/bpf" "$BUILD/tests/e2e" "$BUILD/tests/truth" "$BUILD/examples" -type f -perm -100 ! -path '*.p/*'
	find "$SRC/tests/e2e" "$SRC/tests/truth" \( -name '*.[ch]' -o -name helpers.sh -o -name ask.py \)
	find "$SRC/tests/kernels" -name 'guest*'
	printf '%s\n' "$SRC/shared/waits.def"
}

# Python's own library, without what is large and of no use here.
python_files() {
	local library
	library=$(python3 -c 'import os; print(os.path.dirname(os.__file__))') || return
	find "$library" -type f \( -name '*.py' -o -name '*.so' \) ! -path '*/test/*' ! -path '*/tests/*' ! -path '*/idlelib/*' ! -path '*/lib2to3/*' \
		! -path '*/ensurepip/*' ! -path '*/tkinter/*' ! -path '*/config-*' ! -path '*-packages/*' ! -path '*/pydoc_data/*'
}

# Writes $cache/image and its digest, which stands for the build in all results, into $image_digest.
make_image() {
	local root=$cache/root directory
	local -a files
	mapfile -t files < <(system_files && tree_files && python_files)
	rm -rf "$root"
	mkdir -p "$root"/{dev,proc,sys,tmp,run,root,etc,usr}
	copy_in "$root" "${files[@]}" || return
	mapfile -t files < <(libraries_of "${files[@]}")
	copy_in "$root" "${files[@]}" || return
	for directory in bin sbin lib lib64; do
		mkdir -p "$root/usr/$directory"
		if [ -d "$root/$directory" ]; then
			cp -a "$root/$directory/." "$root/usr/$directory/" && rm -rf "${root:?}/$directory" || return
		fi
		ln -s "usr/$directory" "$root/$directory"
	done
	ln -sf mawk "$root/usr/bin/awk"
	ln -sf "$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')" "$root/usr/bin/python3"
	printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
	printf '#!/bin/bash\nexport SRC=%q BUILD=%q COZBPF=%q\nsource %q\n' "$SRC" "$BUILD" "$COZBPF" "$SRC/tests/kernels/guest_init.sh" >"$root/init"
	chmod 755 "$root/init"
	# shellcheck disable=SC2034 # for kernels.test.sh
	image_digest=$(cd "$root" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16)
	(cd "$root" && find . -print0 | cpio -0 -o --quiet -H newc -R 0:0) >"$cache/image" || return
	rm -rf "$root"
}
