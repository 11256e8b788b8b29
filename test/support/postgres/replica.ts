import { execFile, execFileSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { postgresFolder } from './find-postgres.ts'
import { PostgresServer } from './postgres-server.ts'

/** Starts a streaming replica of the server. `SELECT pg_promote()` makes a primary of it. */
export async function startReplica(primary: PostgresServer): Promise<PostgresServer> {
  const replica = await PostgresServer.start()
  const [{ folder }] = (await replica.query("SELECT current_setting('data_directory') AS folder")) as [
    { folder: string },
  ]
  const [owner] = execFileSync('stat', ['-c', '%u:%g', folder], { encoding: 'utf8' }).split('\n') as [string]
  await replica.stop('SIGINT')
  await rm(folder, { recursive: true })
  const copy = [
    '--pgdata',
    folder,
    '--dbname',
    primary.url,
    '--write-recovery-conf',
    '--checkpoint',
    'fast',
    '--no-sync',
  ]
  await promisify(execFile)(program(), copy)
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', owner, folder])
  // It resolves when the server takes writes.
  void replica.restart().catch(() => {})
  const isUp = async () => (await replica.query('SELECT 1').catch(() => [])).length > 0
  while (!(await isUp())) await setTimeout(20)
  return replica
}

/** The program of the same installation as the server, which can be a link on the PATH. */
const program = (): string => join(dirname(realpathSync(join(postgresFolder() as string, 'initdb'))), 'pg_basebackup')
