import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Part } from './part.ts'

const program = fileURLToPath(new URL('../simulation/run.ts', import.meta.url))

/** The time of a run over Postgres, as a multiple of the others. */
const postgresShare = 50

/** Plays the simulation, as on Node and as on Workers, and some of it over Postgres. */
export const simulation: Part = async ({ seeds, seed }) => {
  const faults: string[] = []
  const runs = [
    ['--seeds', `${seeds}`],
    ['--seeds', `${seeds}`, '--workers'],
    ['--seeds', `${Math.ceil(seeds / postgresShare)}`, '--setup', 'postgres'],
  ]
  for (const run of runs) {
    const args = ['--import', 'tsx', program, '--from', `${seed}`, ...run]
    const [code] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit')
    if (code !== 0) faults.push(`the simulation ended with ${code} (${args.slice(3).join(' ')})`)
  }
  return faults
}
