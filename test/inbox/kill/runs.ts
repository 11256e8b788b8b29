import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A run of a handler in a process that may be killed. Times are in ms since the epoch. */
export interface Run {
  readonly process: string
  readonly handler: string
  /** The key of the event. */
  readonly key: string
  readonly beganAt: number
  /** `undefined`: it was cut off. */
  endedAt?: number
  /** `true` if the handler threw, so that it has to run again. */
  failed?: boolean
}

/** Records the begin of a run. The returned function records its end. */
export type RecordRun = (handler: string, key: string) => (as: 'done' | 'failed') => void

const suffix = '.runs'

/** Opens the file with the runs of a process. Each line is in the file when its write returns, and survives SIGKILL. */
export function openRuns(folder: string, process: string): RecordRun {
  const file = openSync(join(folder, `${process}${suffix}`), 'a')
  let runs = 0
  return (handler, key) => {
    const run = runs++
    writeSync(file, `${run} ${Date.now()} ${handler} ${key}\n`)
    return (as) => void writeSync(file, `${run} ${Date.now()} ${as}\n`)
  }
}

/** Reads the runs of every process. */
export function readRuns(folder: string): readonly Run[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(suffix))
  return files.flatMap((file) => runsOf(file.slice(0, -suffix.length), readFileSync(join(folder, file), 'utf8')))
}

function runsOf(process: string, text: string): readonly Run[] {
  const runs: Run[] = []
  // The last line may be cut off.
  for (const line of text.split('\n').slice(0, -1)) {
    const [number = '', at = '', word = '', ...key] = line.split(' ')
    const run = runs[Number(number)]
    if (run === undefined) runs.push({ process, handler: word, key: key.join(' '), beganAt: Number(at) })
    else Object.assign(run, { endedAt: Number(at), failed: word === 'failed' })
  }
  return runs
}
