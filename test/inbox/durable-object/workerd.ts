import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { type Program, startProgram } from '../../support/program.ts'

/** A class of Durable Objects in a worker, and the binding to it. */
export interface ObjectClass {
  readonly binding: string
  readonly className: string
}

export interface WorkerSetup {
  /** The source of the worker. */
  readonly entry: URL
  readonly classes: readonly ObjectClass[]
  /** The number of isolates that share the objects. Each listens on a port of its own. */
  readonly isolates?: number
  /** `true` if it imports the installed package instead of the source. */
  readonly isInstalled?: boolean
}

/** The source of `#crypto` for Workers. In the built package, package.json names the file that is built of it. */
const cryptoOfWeb = fileURLToPath(new URL('../../../src/internal/crypto/web.ts', import.meta.url))

/** A worker on a disk: the storage of its objects outlives the workerd that runs it. */
export class WorkerOnDisk {
  readonly #binary: string
  readonly #setup: WorkerSetup
  readonly #folder: string

  private constructor(binary: string, setup: WorkerSetup, folder: string) {
    this.#binary = binary
    this.#setup = setup
    this.#folder = folder
  }

  /** Bundles a worker, without anything of Node. */
  static async make(binary: string, setup: WorkerSetup): Promise<WorkerOnDisk> {
    const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-objects-'))
    await mkdir(join(folder, 'storage'))
    await build({
      entryPoints: [fileURLToPath(setup.entry)],
      outfile: join(folder, 'worker.js'),
      bundle: true,
      format: 'esm',
      conditions: ['workerd', 'worker', 'browser'],
      alias: setup.isInstalled === true ? {} : { '#crypto': cryptoOfWeb },
    })
    return new WorkerOnDisk(binary, setup, folder)
  }

  /**
   * Starts it.
   * @param variables text bindings
   * @param port of the first isolate; by default any that is free
   */
  async start(variables: Readonly<Record<string, string>> = {}, port = 0): Promise<RunningWorker> {
    const { isolates = 1 } = this.#setup
    await writeFile(join(this.#folder, 'workerd.capnp'), configuration(this.#setup, variables, port))
    const args = ['serve', 'workerd.capnp', '--control-fd=1']
    const listening = /"event":"listen".*"port":(\d+)/
    const program = await startProgram(this.#binary, args, { cwd: this.#folder }, listening)
    return new RunningWorker(program, isolates)
  }

  remove(): Promise<void> {
    return rm(this.#folder, { recursive: true })
  }
}

/** A workerd that runs. */
export class RunningWorker {
  readonly #program: Program
  readonly #isolates: number

  constructor(program: Program, isolates: number) {
    this.#program = program
    this.#isolates = isolates
  }

  get output(): string {
    return this.#program.output()
  }

  /** The origin of each isolate. */
  async origins(): Promise<readonly string[]> {
    for (;;) {
      const ports = [...this.output.matchAll(/"event":"listen".*"port":(\d+)/g)].map(([, port]) => port)
      if (ports.length >= this.#isolates) return ports.map((port) => `http://127.0.0.1:${port}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    return this.#program.stop(signal)
  }
}

function configuration(
  { classes, isolates = 1 }: WorkerSetup,
  variables: Readonly<Record<string, string>>,
  port: number,
): string {
  const numbers = Array.from({ length: isolates }, (_, number) => number)
  const texts = Object.entries(variables).map(([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`)
  const bindings = (number: number) => [
    ...texts,
    `(name = "ISOLATE", text = "${number}")`,
    ...classes.map(({ binding, className }) => {
      const designator = number === 0 ? `"${className}"` : `(className = "${className}", serviceName = "isolate-0")`
      return `(name = "${binding}", durableObjectNamespace = ${designator})`
    }),
  ]
  // The first isolate has the objects, the others reach them.
  const objects = `durableObjectNamespaces = [${classes
    .map(({ className }) => `(className = "${className}", uniqueKey = "${className}", enableSql = true)`)
    .join(', ')}],
      durableObjectStorage = (localDisk = "disk"),`
  const worker = (number: number) => `(
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      bindings = [${bindings(number).join(', ')}],
      compatibilityDate = "2026-03-01",
      ${number === 0 ? objects : ''}
    )`
  return `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (
      services = [
        ${numbers.map((number) => `(name = "isolate-${number}", worker = ${worker(number)}),`).join('\n')}
        (name = "disk", disk = (path = "storage", writable = true)),
        (name = "internet", network = (allow = ["local"])),
      ],
      sockets = [${numbers
        .map(
          (number) =>
            `(name = "http-${number}", address = "127.0.0.1:${number === 0 ? port : 0}", http = (), service = "isolate-${number}")`,
        )
        .join(', ')}],
    );`
}
