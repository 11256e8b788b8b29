import { describe, expect, test } from 'vitest'
import { judge, type KillEvidence } from './judge.ts'
import type { Run } from './runs.ts'

const keys = Array.from({ length: 40 }, (_, i) => `media-${i}`)
const done = { beganAt: 100, endedAt: 110, failed: false }

/** A run of one handler for `media-0`, beside one in which each event was handled once and a kill cut one off. */
function evidence(runs: readonly Partial<Run>[] = [], changes: Partial<KillEvidence> = {}): KillEvidence {
  const others = keys.slice(1).map((key) => ({ process: 'a', handler: 'first', key, ...done }))
  const all = (runs.length === 0 ? [done] : runs).map((run) => ({
    process: 'a',
    handler: 'first',
    key: 'media-0',
    ...run,
  }))
  const cutOff = { process: 'a', handler: 'first', key: 'never acknowledged', beganAt: 1_990 }
  return {
    acknowledged: new Set(keys),
    handlers: ['first'],
    runs: [...others, ...(all as Run[]), cutOff],
    kills: [{ process: 'a', at: 2_000 }],
    deadLetters: 0,
    ...changes,
  }
}

describe('a run with kills is judged', () => {
  test('to be right if each event was handled once', () => {
    const { faults, ...numbers } = judge(evidence())
    expect(faults).toEqual([])
    expect(numbers).toEqual({
      kills: 1,
      acknowledged: 40,
      handled: 40,
      missing: 0,
      cutOff: 1,
      doubled: 0,
      deadLetters: 0,
    })
  })

  test('to be right if a kill explains the second run', () => {
    const cutOff = { beganAt: 1_995 }
    const ended = { beganAt: 1_980, endedAt: 1_999, failed: false }
    const again = { process: 'b', beganAt: 2_500, endedAt: 2_510, failed: false }
    expect(judge(evidence([cutOff, again]))).toMatchObject({ doubled: 0, cutOff: 2, faults: [] })
    expect(judge(evidence([ended, again]))).toMatchObject({ doubled: 1, faults: [] })
  })

  test('to be right if a handler that failed runs again', () => {
    expect(
      judge(
        evidence([
          { ...done, failed: true },
          { beganAt: 120, endedAt: 130, failed: false },
        ]),
      ).faults,
    ).toEqual([])
  })

  test('to be wrong if nothing was acknowledged', () => {
    const { faults } = judge(evidence([], { acknowledged: new Set() }))
    expect(faults).toEqual(['only 0 events were acknowledged'])
  })

  test('to be wrong if everything was handled twice', () => {
    const twice = evidence()
    const again = twice.runs.slice(0, -1).map((run) => ({ ...run, beganAt: 300, endedAt: 310 }))
    const { faults, doubled } = judge({ ...twice, runs: [...twice.runs, ...again] })
    expect(doubled).toBe(40)
    expect(faults).toHaveLength(40)
    expect(faults[0]).toBe('first of media-1 in a: a had run it, and was killed later')
  })

  test('to be wrong if an acknowledged event was not handled, or only by one handler', () => {
    expect(judge(evidence([{ key: 'another', ...done }])).faults).toEqual(['1 acknowledged events were not handled'])
    const { faults } = judge(evidence([], { handlers: ['first', 'second'] }))
    expect(faults).toEqual(['40 acknowledged events were not handled'])
  })

  test('to be wrong if nothing was cut off, or an event became a dead letter', () => {
    const { runs } = evidence()
    const kills = ['a', 'b', 'c', 'd'].map((process) => ({ process, at: 2_000 }))
    expect(judge(evidence([], { runs: runs.slice(0, -1), kills })).faults).toEqual([
      'no kill cut off a running handler',
    ])
    expect(judge(evidence([], { deadLetters: 1 })).faults).toEqual(['1 dead letters'])
  })

  const again = { process: 'b', beganAt: 2_500, endedAt: 2_510, failed: false }
  test.each<[string, readonly Partial<Run>[], string]>([
    ['no process was killed', [{ ...done, process: 'c' }, again], 'c had run it, and was not killed'],
    ['the first process was killed later', [done, { ...again, beganAt: 1_500 }], 'a had run it, and was killed later'],
    ['the first run had long ended', [done, again], 'a had handled it 1890 ms before it was killed'],
    [
      'the first run is still going on',
      [{ beganAt: 100, endedAt: 2_600, failed: true }, again],
      'a was still running it',
    ],
  ])('to be wrong if an event was handled twice although %s', (_, runs, fault) => {
    expect(judge(evidence(runs)).faults).toEqual([`first of media-0 in b: ${fault}`])
  })

  test('to be wrong if an event was handled twice although its process had recorded the first time', () => {
    const runs = [{ beganAt: 1_980, endedAt: 1_990, failed: false }, again]
    const { faults } = judge(evidence(runs, { settled: [{ process: 'a', at: 1_995 }] }))
    expect(faults).toEqual(['first of media-0 in b: a had recorded that it had handled it'])
  })

  test('to be wrong if a handler runs again although the next one had begun', () => {
    const first = [{ beganAt: 1_980, endedAt: 1_990, failed: false }, again]
    const second = { process: 'a', handler: 'second', key: 'media-0', beganAt: 1_991 }
    const { runs } = evidence(first)
    const { faults } = judge(evidence(first, { handlers: ['first', 'second'], runs: [...runs, second] }))
    expect(faults).toContain('first of media-0 in b: a had gone on to second before it was killed')
  })
})
