import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/**
 * Bundles a program, given by its URL, into one file in the folder, and returns the file's path. It starts in half the
 * time that tsx needs, and a kill run starts hundreds.
 */
export async function bundled(program: URL, folder: string): Promise<string> {
  const outfile = join(folder, 'program.cjs')
  await build({
    entryPoints: [fileURLToPath(program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    sourcemap: 'inline',
    external: ['pg-native'],
    alias: { '#crypto': fileURLToPath(new URL('../../../src/internal/crypto/node.ts', import.meta.url)) },
    logLevel: 'error',
  })
  return outfile
}

/** A program in a process of its own, which a test can kill and pause. */
export class Forked<FromChild, ToChild = never> {
  /** Resolves once the process has ended. */
  readonly ended: Promise<unknown>
  readonly #child: ChildProcess

  /** Starts a program that `bundled` has written, which gets the task as JSON. */
  constructor(program: string, task: unknown, onMessage: (message: FromChild) => void) {
    this.#child = fork(program, [JSON.stringify(task)], {
      execArgv: ['--enable-source-maps'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.ended = once(this.#child, 'exit')
    this.#child.on('message', onMessage)
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  tell(message: ToChild): void {
    // The channel breaks with the process, while a message is on its way.
    if (this.#child.connected) this.#child.send(message as object, () => {})
  }

  pause(): void {
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }

  /** Ends the process with SIGKILL, even while it is paused. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }
}
