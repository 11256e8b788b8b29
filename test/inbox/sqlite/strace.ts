import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { canTest } from '../../support/can-test.ts'

/** Returns true if the tests that trace a process can run. A sandbox can forbid tracing even in CI. */
export function findStrace(): boolean {
  try {
    execFileSync('strace', ['-o', '/dev/null', process.execPath, '--version'], { stdio: 'ignore' })
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? canTest(false, 'strace is not installed', 'install it (Debian: apt-get install strace)')
      : canTest(false, 'strace may not trace here', 'allow it', { inCi: false })
  }
}

/** A call of the operating system that has returned. */
export interface SystemCall {
  readonly name: string
  /** The file or socket that it was about. */
  readonly file: string
  /** The parameters and the result as strace prints them. */
  readonly text: string
}

const traced = 'write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync'

/** Starts a program of the folder `processes` that prints one line, and traces what it writes. It is killed with the test. */
export async function traceProgram(name: string, argument: string, output: string) {
  const program = fileURLToPath(new URL(`./processes/${name}.ts`, import.meta.url))
  // -y prints the files, and -s the first bytes of what is written: a page of the database and its header.
  const options = ['-f', '-y', '-s', '8192', '-e', `trace=${traced}`, '-e', 'signal=none', '-o', output]
  const command = [process.execPath, '--import', 'tsx', program, argument]
  const child = spawn('strace', [...options, ...command], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const end = async () => {
    child.stdin.end()
    await exit
  }
  onTestFinished(end)
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    line,
    /** Ends the program, and returns its calls in the order in which they returned. */
    async calls(): Promise<SystemCall[]> {
      await end()
      return callsOf(await readFile(output, 'latin1'))
    },
  }
}

/** Parses what strace has printed. A call that another thread interrupts has two lines. */
function callsOf(output: string): SystemCall[] {
  const unfinished = new Map<string, string>()
  const calls: SystemCall[] = []
  for (const line of output.split('\n')) {
    const [, thread = '', printed = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, begun] = /^(.*) <unfinished \.\.\.>$/.exec(printed) ?? []
    const [, rest] = /^<\.\.\. \w+ resumed>(.*)$/.exec(printed) ?? []
    if (begun !== undefined) unfinished.set(thread, begun)
    const text = rest === undefined ? printed : `${unfinished.get(thread)}${rest}`
    const [, name, file] = /^(\w+)\(\d+<([^>]*)>/.exec(text) ?? []
    if (begun === undefined && name !== undefined && file !== undefined) calls.push({ name, file, text })
  }
  return calls
}
