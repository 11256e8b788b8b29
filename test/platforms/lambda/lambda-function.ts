import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** A message of the platform to a sandbox. */
export interface Invocation {
  readonly handler: string
  readonly event: unknown
}

/** The answer of a sandbox. */
export type Outcome = { readonly result: unknown } | { readonly error: string }

export interface LambdaFunctionOptions {
  /** The bundle of the function module. */
  readonly bundle: string
  /** The name of the export that is invoked. */
  readonly handler: string
  readonly env: Readonly<Record<string, string>>
}

/** Bundles a module of `functions/` for the sandboxes, as a user does for Lambda. */
export async function bundleFunction(name: string): Promise<{ readonly bundle: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'lambda-'))
  const bundle = join(folder, 'function.cjs')
  const contents = `import * as handlers from './functions/${name}.ts'; import { runSandbox } from './sandbox.ts'; runSandbox(handlers)`
  await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    alias: { '#crypto': fileURLToPath(new URL('../../../src/internal/crypto/node.ts', import.meta.url)) },
    outfile: bundle,
    bundle: true,
    platform: 'node',
    format: 'cjs',
  })
  return { bundle, remove: () => rm(folder, { recursive: true }) }
}

/**
 * A function on a platform that does to it what Lambda does: a sandbox handles one event at a time. It is frozen as soon as
 * it has answered, and thawed for the next event. Events of one moment get a sandbox each.
 */
export class LambdaFunction {
  readonly #options: LambdaFunctionOptions
  readonly #frozen: ChildProcess[] = []
  readonly #running = new Set<Promise<unknown>>()
  /** The number of sandboxes that were started. */
  started = 0

  constructor(options: LambdaFunctionOptions) {
    this.#options = options
  }

  /** Starts a sandbox before there is an event for it, and freezes it. Rejects if its module throws. */
  async warm(): Promise<void> {
    freeze(await this.#start(), this.#frozen)
  }

  invoke(event: unknown): Promise<unknown> {
    const running = this.#invoke(event)
    this.#running.add(running)
    running.catch(() => {}).finally(() => this.#running.delete(running))
    return running
  }

  async #invoke(event: unknown): Promise<unknown> {
    const sandbox = this.#frozen.pop() ?? (await this.#start())
    sandbox.kill('SIGCONT')
    const answered = once(sandbox, 'message')
    sandbox.send({ handler: this.#options.handler, event } satisfies Invocation)
    const [outcome] = (await answered) as [Outcome]
    freeze(sandbox, this.#frozen)
    if ('error' in outcome) throw new Error(outcome.error)
    return outcome.result
  }

  async #start(): Promise<ChildProcess> {
    this.started++
    const { bundle, env } = this.#options
    const { PATH = '' } = process.env
    const sandbox = fork(bundle, { env: { PATH, ...env }, stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] })
    // A frozen process would outlive this one.
    const kill = () => sandbox.kill('SIGKILL')
    process.once('exit', kill)
    sandbox.once('exit', () => process.off('exit', kill))
    let written = ''
    sandbox.stderr?.on('data', (text) => {
      written += text
    })
    const failed = once(sandbox, 'close').then(() => {
      throw new Error(`the sandbox ended:\n${written}`)
    })
    failed.catch(() => {})
    await Promise.race([once(sandbox, 'message'), failed])
    return sandbox
  }

  /** Takes back the sandboxes that have nothing to do, as Lambda does at any time, without a word to them. */
  async killFrozen(): Promise<void> {
    await Promise.all(this.#frozen.splice(0).map((sandbox) => end(sandbox, 'SIGKILL')))
  }

  /** Lets the invocations that run end, and then stops the sandboxes in an orderly way. */
  async shutDown(): Promise<void> {
    await Promise.allSettled(this.#running)
    await Promise.all(this.#frozen.splice(0).map((sandbox) => end(sandbox, 'SIGTERM')))
  }
}

function freeze(sandbox: ChildProcess, frozen: ChildProcess[]): void {
  sandbox.kill('SIGSTOP')
  frozen.push(sandbox)
}

async function end(sandbox: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const closed = once(sandbox, 'close')
  sandbox.kill(signal)
  // A stopped process takes a signal once it continues.
  sandbox.kill('SIGCONT')
  await closed
}
