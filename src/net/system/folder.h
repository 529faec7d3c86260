/* folder.h: tells whether a directory is closed to those who could replace what is in it. */
#ifndef PAWL_NET_FOLDER_H
#define PAWL_NET_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Room for a phrase that says why a directory is not closed, in bytes. */
#define FOLDER_WHY_BYTES 128

enum folder_access {
	/* Only this process's account, root, and those whom root has let in may replace files. */
	FOLDER_CLOSED,
	/* The directory belongs to this process's account, and its mode lets others write. */
	FOLDER_OPEN,
	/* The directory belongs to another account, or to root, and lets others write. */
	FOLDER_FOREIGN
};

/* Looks at a directory. Unless it is closed, `why` says what is wrong, as the rest of a sentence
 * that begins with the directory. A directory that is missing counts as closed: whoever opens it
 * says so. With `only_checked`, root looks at it for another account, to which it may belong. */
enum folder_access folder_look(const char *path, bool only_checked, char why[FOLDER_WHY_BYTES]);

#endif
