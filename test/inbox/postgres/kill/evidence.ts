import { existsSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** The numbers that a process keeps up to date in a file, so that they outlive it. */
const counters = ['running', 'inTransaction', 'leasesLost', 'duplicates'] as const
export type Counters = Record<(typeof counters)[number], number>

const acknowledgedFile = (folder: string, name: string) => join(folder, `${name}.acknowledged`)
const countersFile = (folder: string, name: string) => join(folder, `${name}.counters`)

/** Opens the files with what a process has seen. Each write is in the file when it returns, and survives SIGKILL. */
export function openEvidence(folder: string, name: string) {
  const acknowledged = openSync(acknowledgedFile(folder, name), 'a')
  const file = openSync(countersFile(folder, name), 'w')
  const numbers = new Int32Array(counters.length)
  return {
    acknowledge: (key: string) => void writeSync(acknowledged, `${key}\n`),
    add(counter: keyof Counters, difference: 1 | -1) {
      numbers[counters.indexOf(counter)] = (numbers[counters.indexOf(counter)] as number) + difference
      writeSync(file, numbers, 0, numbers.byteLength, 0)
    },
  }
}

/** Returns the keys that a process has acknowledged, in order. */
export function readAcknowledged(folder: string, name: string): readonly string[] {
  const path = acknowledgedFile(folder, name)
  // The last line may be cut off.
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
}

/** Returns the counters of a process, as it last wrote them. */
export function readCounters(folder: string, name: string): Counters {
  const path = countersFile(folder, name)
  const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
  const numbers = counters.map((counter, i) => [counter, bytes.length > i * 4 ? bytes.readInt32LE(i * 4) : 0])
  return Object.fromEntries(numbers) as Counters
}

/** Returns the names of the processes that have opened their files. */
export function processesOf(folder: string): readonly string[] {
  const suffix = '.counters'
  return readdirSync(folder).flatMap((file) => (file.endsWith(suffix) ? [file.slice(0, -suffix.length)] : []))
}
