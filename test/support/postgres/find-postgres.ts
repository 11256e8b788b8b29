import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { canTest } from '../can-test.ts'

/** Debian keeps the server's programs here, one folder per version, and not on the PATH. */
const debian = '/usr/lib/postgresql'

/** Returns true if the tests that need Postgres can run. */
export const findPostgres = (): boolean =>
  canTest(
    postgresFolder() !== undefined,
    'The Postgres server is not installed',
    'install it (Debian: apt-get install postgresql)',
  )

/** The folder with `initdb` and `postgres`: the first on the PATH, otherwise Debian's newest version. */
export function postgresFolder(): string | undefined {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ]
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))
}
