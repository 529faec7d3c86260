/* certs.h: pawl cert, which makes, shows and revokes certificates. */
#ifndef PAWL_CLI_CERTS_H
#define PAWL_CLI_CERTS_H

#include "cli.h"

extern const struct cli_command cli_cert;

#endif
