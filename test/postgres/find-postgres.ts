import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian keeps the server's programs here, one folder per version, and not on the PATH. */
const debian = '/usr/lib/postgresql'

/**
 * Checks whether the Postgres server is installed, and prints a warning if not. Throws in CI, where a skipped test would
 * prove nothing.
 */
export function findPostgres(): boolean {
  if (postgresFolder() !== undefined) return true
  if (process.env['CI'])
    throw new Error('The Postgres server is not installed; install it (Debian: apt-get install postgresql)')
  console.warn('The Postgres server is not installed on this machine: its tests are skipped')
  return false
}

/** The folder with `initdb` and `postgres`: the first on the PATH, otherwise Debian's newest version. */
export function postgresFolder(): string | undefined {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ]
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))
}
