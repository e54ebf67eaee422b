// Loaded into a server before its own code: the vault in a directory without a capital letter,
// for it opens no other on a file system that tells them apart. It ends with this process.
import { randomUUID } from 'node:crypto';
import { cpSync, rmSync } from 'node:fs';

const vault = `/tmp/writ-vault-${randomUUID()}`;
cpSync(process.argv[2], vault, { recursive: true });
process.argv[2] = vault;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit());
process.on('exit', () => rmSync(vault, { recursive: true }));
