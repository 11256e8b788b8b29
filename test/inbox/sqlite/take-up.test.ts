import { expect, test, vi } from 'vitest'
import { Jobs } from '../../../src/inbox/shared/jobs.ts'
import { UnreadableEvent } from '../../../src/inbox/sqlite/event-row.ts'
import { SqliteJob } from '../../../src/inbox/sqlite/job.ts'
import { TakeUp } from '../../../src/inbox/sqlite/take-up.ts'
import { eventOf } from '../../../src/testing/contract/handling.ts'
import { silent } from '../../handlers/fixture.ts'

/** Takes up events of a file that holds these rows. The key of each event is its row. */
function subject(rows: number[]) {
  const jobs = new Jobs<SqliteJob>()
  const due = new Map<number, number>()
  const added: number[] = []
  const later: [number, number][] = []
  const lookAgain = vi.fn()
  const warn = vi.fn()
  const error = vi.fn()
  const state = { hasStopped: false }
  const get = vi.fn((row: number) =>
    rows.includes(row)
      ? {
          ...eventOf(`${row}`),
          row,
          attempts: 0,
          completed: [],
          crashes: 0,
          dueInMs: due.get(row) ?? 0,
          waitsTooLong: false,
        }
      : undefined,
  )
  const takeUp = new TakeUp({
    file: {
      events: { rows: (after = 0, limit = rows.length) => rows.filter((row) => row > after).slice(0, limit), get },
    } as never,
    jobs,
    handling: {
      add: ({ row }: SqliteJob) => void added.push(row),
      addLater: ({ row }: SqliteJob, ms: number) => void later.push([row, ms]),
    } as never,
    transactions: undefined as never,
    logger: { ...silent, warn, error },
    hasStopped: () => state.hasStopped,
    lookAgain,
  })
  const hold = (row: number) => jobs.add(new SqliteJob(eventOf(`${row}`), row, undefined as never))
  return { takeUp, added, later, due, get, hold, lookAgain, warn, error, state }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const rowsTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

test('takes up every event when the file is opened, those that are due later with their pause', () => {
  const { takeUp, added, later, due } = subject([1, 2, 3])
  due.set(2, 700)
  due.set(3, -5)
  takeUp.all()
  expect([added, later]).toEqual([[1, 3], [[2, 700]]])
})

test('takes up the events that are not in memory, 50 in a turn of the event loop at most', async () => {
  const { takeUp, added, get, hold } = subject(rowsTo(200))
  hold(1)
  const taken = takeUp.missing()
  const perTurn: number[] = []
  for (let before = 0; added.length < 199; before = added.length) {
    await turn()
    perTurn.push(added.length - before)
  }
  await taken
  // Two turns of the take-up can be one of the test.
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(100)
  expect(perTurn.length).toBeGreaterThan(1)
  expect(added).toEqual(rowsTo(200).slice(1))
  expect(get).not.toHaveBeenCalledWith(1)
})

test('looks again later when it is asked to while it is reading', async () => {
  const { takeUp, added, lookAgain } = subject(rowsTo(30))
  const [first, second] = [takeUp.missing(), takeUp.missing()]
  await Promise.all([first, second])
  expect(lookAgain).toHaveBeenCalledOnce()
  expect(added).toEqual(rowsTo(30))
  await takeUp.missing()
  expect(lookAgain).toHaveBeenCalledOnce()
})

test('takes up no more once the inbox has stopped', async () => {
  const { takeUp, added, state } = subject(rowsTo(200))
  const taken = takeUp.missing()
  state.hasStopped = true
  await taken
  expect(added.length).toBeLessThanOrEqual(50)
})

test('logs that the file cannot be read, and reads it the next time', async () => {
  const { takeUp, added, get, warn } = subject([1, 2])
  const error = new Error('disk I/O error')
  get.mockImplementationOnce(() => {
    throw error
  })
  await takeUp.missing()
  expect(warn).toHaveBeenCalledWith({ err: error }, 'the inbox could not read its file')
  await takeUp.missing()
  expect(added).toEqual([1, 2])
})

test('reports an event that cannot be parsed once, and takes up the others', async () => {
  const { takeUp, added, get, error, warn } = subject([1, 2])
  const unreadable = new UnreadableEvent(1, new SyntaxError('no JSON'))
  get.mockImplementationOnce(() => {
    throw unreadable
  })
  await takeUp.missing()
  await takeUp.missing()
  expect(added).toEqual([2])
  const message = 'an event in the file of the inbox cannot be read, and stays there'
  expect(error.mock.calls).toEqual([[{ row: 1, err: unreadable }, message]])
  expect(warn).not.toHaveBeenCalled()
})

test('takes up no event that has ended meanwhile, or that is in memory', () => {
  const { takeUp, added, hold, lookAgain } = subject([1])
  takeUp.replayed(2)
  hold(1)
  takeUp.replayed(1)
  expect(added).toEqual([])
  expect(lookAgain).not.toHaveBeenCalled()
})

test('looks again later when a replayed event cannot be read now', () => {
  const { takeUp, added, get, lookAgain } = subject([1])
  get.mockImplementationOnce(() => {
    throw new Error('disk I/O error')
  })
  takeUp.replayed(1)
  expect(lookAgain).toHaveBeenCalledOnce()
  expect(added).toEqual([])
})
