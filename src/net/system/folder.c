/* folder.c: who owns a directory, and whom its mode lets write. */
#include "folder.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever may write to a directory may replace the files in it, whatever their own modes are. If
 * the directory belongs to root, its group may write to it, because this process may have its own
 * right by that group: this is how Kubernetes gives a volume to an account (fsGroup). */
enum folder_access folder_look(const char *path, bool only_checked, char why[FOLDER_WHY_BYTES]) {
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
		return FOLDER_CLOSED;
	}
	const uid_t me = geteuid();
	const unsigned mode = st.st_mode & 07777;
	const unsigned others = st.st_uid == 0 && me != 0 ? S_IWOTH : S_IWGRP | S_IWOTH;
	if (st.st_uid != 0 && st.st_uid != me && !(only_checked && me == 0)) {
		snprintf(why, FOLDER_WHY_BYTES,
			"belongs to another user (%u), who can replace the files in it",
			(unsigned)st.st_uid);
		return FOLDER_FOREIGN;
	}
	if (mode & others) {
		snprintf(why, FOLDER_WHY_BYTES,
			"can be written to by others (mode %04o), who can replace the files in it",
			mode);
		return st.st_uid == me ? FOLDER_OPEN : FOLDER_FOREIGN;
	}
	return FOLDER_CLOSED;
}
