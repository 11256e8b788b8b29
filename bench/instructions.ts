import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Child } from './child.ts'

const perf = 'perf'
// Virtual machines often hide the counter.
const event = 'instructions:u'

function countOf(output: string): number {
  const line = output.split('\n').find((line) => line.includes(`,${event},`))
  return Number.parseInt(line ?? '', 10)
}

/** Returns `true` if perf counts instructions here. */
export const countsInstructions: boolean = (() => {
  const { stderr } = spawnSync(perf, ['stat', '-x,', '-e', event, 'true'], { encoding: 'utf8' })
  return countOf(stderr ?? '') > 0
})()

/**
 * Begins to count the instructions of a process, if that is possible.
 * @returns a function that stops, and gives those of each delivery
 */
export async function countInstructions(child: Child, deliveries: number) {
  if (!countsInstructions) return undefined
  const { pid } = child
  const counter = spawn(perf, ['stat', '-x,', '-e', event, '-p', `${pid}`], { stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  counter.stderr.setEncoding('utf8').on('data', (text) => (output += text))
  // Until it is attached.
  await pause(200)
  return async () => {
    counter.kill('SIGINT')
    await once(counter, 'close')
    return countOf(output) / deliveries
  }
}
