import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

interface Report {
  readonly answers: Readonly<Record<string, Readonly<Record<number, number>>>>
  readonly stats: { readonly deadLetters: number; readonly expected: number }
  readonly afterwards: number
}

const statusesOf = ({ answers }: Report, part: string) => [
  ...new Set(
    Object.entries(answers)
      .filter(([kind]) => kind.includes(part))
      .flatMap(([, counts]) => Object.keys(counts)),
  ),
]

test('a heap of 256 MB is enough for any number of bodies that are made to take memory', async () => {
  const program = fileURLToPath(new URL('./small-heap-child.ts', import.meta.url))
  const child = fork(program, {
    execArgv: ['--import', 'tsx', '--max-old-space-size=256'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  let report: Report | undefined
  child.on('message', (message) => {
    report = message as Report
  })
  expect(await once(child, 'exit')).toEqual([0, null])
  if (report === undefined) throw new Error('the child sent no report')
  expect(statusesOf(report, 'too many values')).toEqual(['400'])
  expect(statusesOf(report, 'partial.finished: many')).toEqual(['200', '503'])
  // The newest dead letters and the first expectations, as many as have room.
  expect(report.stats.deadLetters).toBeLessThan(4 * 100)
  expect(report.stats.expected).toBeLessThan(8 * 100)
  expect(report.afterwards).toBe(200)
})
