import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'
import type { Deployment } from '../../platforms/platform.suite.ts'
import { freePort } from '../../support/free-port.ts'
import { startProgram } from '../../support/program.ts'

/** A worker with a queue, both in one workerd. */
export interface QueueWorker extends Deployment {
  /** Kills workerd and starts it again on the same storage. */
  kill(): Promise<void>
  /** The output of workerd since it was started. */
  output(): string
}

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** The time in which a run whose line was taken is recorded, in ms. */
const recordingMs = 300

/** Collects the lines that handlers post. */
async function evidence() {
  const lines: string[] = []
  let isClosed = false
  const server = createServer(async (request, response) => {
    let line = ''
    for await (const chunk of request) line += chunk
    if (isClosed) return response.destroy()
    lines.push(line)
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lines,
    close: () => server.close(),
    /** Takes no line while `run` runs, and lets the runs whose lines were taken end before: none is cut off. */
    async closedDuring(run: () => Promise<void>) {
      isClosed = true
      await sleep(recordingMs)
      await run()
      isClosed = false
    },
  }
}

/** The worker of this folder, and what it imports. */
const ownWorker: BuildOptions = {
  entryPoints: [file('worker.ts')],
  alias: { '#crypto': file('../../../src/internal/crypto/web.ts') },
}

/**
 * Deploys a worker in workerd, with workerd's own Queues Worker as the broker: it keeps messages on the disk.
 * @param source how it is bundled
 */
export async function deployQueueWorker(workerd: string, source = ownWorker): Promise<QueueWorker> {
  const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-queues-'))
  await mkdir(join(folder, 'storage'))
  await build({
    ...source,
    outfile: join(folder, 'worker.js'),
    bundle: true,
    format: 'esm',
    conditions: ['workerd', 'worker', 'browser'],
  })
  const { url: evidenceUrl, lines, close, closedDuring } = await evidence()
  const port = await freePort()
  const configuration = await readFile(file('workerd.capnp'), 'utf8')
  await writeFile(
    join(folder, 'workerd.capnp'),
    configuration.replace('EVIDENCE_URL', evidenceUrl).replace('127.0.0.1:0', `127.0.0.1:${port}`),
  )
  const start = () =>
    startProgram(
      workerd,
      ['serve', 'workerd.capnp', '--experimental', '--verbose', '--control-fd=1'],
      { cwd: folder },
      /"event":"listen".*"port":(\d+)/,
    )
  await copyFile(file('consumers.json'), join(folder, 'consumers.json'))
  let program = await start()
  const restart = async (signal: NodeJS.Signals) => {
    await program.stop(signal)
    program = await start()
  }
  return {
    url: `http://127.0.0.1:${port}/webhooks/media`,
    handled: async () => [...lines],
    // Cloudflare lets the runs of an earlier version end.
    restart: () => closedDuring(() => restart('SIGTERM')),
    kill: () => restart('SIGKILL'),
    output: () => program.output(),
    async stop() {
      await program.stop()
      close()
      await rm(folder, { recursive: true })
    },
  }
}
