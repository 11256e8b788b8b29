import { execFile } from 'node:child_process'
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A fault that the receiver once had, or could have: the line that prevents it, and the line without the fix. */
interface Fault {
  readonly file: string
  readonly fix: string
  readonly without: string
  readonly workers?: boolean
  /** The first seed that is played: shortly before the one that found it when this was written. Default 1. */
  readonly from?: number
  /** The message of the simulation about it. */
  readonly finding: RegExp
}

const faults: Readonly<Record<string, Fault>> = {
  'on Workers a request that was cut off counts as one that goes on': {
    file: 'src/inbox/engine/claimed-attempts.ts',
    fix: '.filter(({ isLate }) => !isLate)',
    without: '',
    workers: true,
    finding: /events stay in the inbox/,
  },
  'a claim in Redis whose answer is lost blocks itself': {
    file: 'src/idempotency/redis.ts',
    fix: 'if not held or held == mine then',
    without: 'if not held then',
    from: 60,
    finding: /with in_progress, and no other process had it/,
  },
  'a clock that was ahead and is corrected postpones retries': {
    file: 'src/inbox/sqlite/statements.ts',
    fix: 'UPDATE inbox_event SET due_at = ? + due_at - delayed_at',
    without: 'UPDATE inbox_event SET due_at = due_at + 0 * ?',
    from: 50,
    finding: /events stay in the inbox/,
  },
  'a crash loop turns harmless events into dead letters': {
    file: 'src/inbox/sql/alone.ts',
    fix: 'if (this.#lane === lane) return true',
    without: 'if (lane) return true',
    from: 520,
    finding: /became a dead letter because of crashes that it did not cause/,
  },
  'an end that came first is forgotten': {
    file: 'src/inbox/memory/expectations.ts',
    fix: 'if (at.getTime() <= endedAt) return',
    without: '',
    from: 80,
    finding: /was reported, and event \d+ had ended it in time/,
  },
  'an end leaves the deadline': {
    file: 'src/inbox/memory/expectations.ts',
    fix: 'if (open.rule === rule && open.beganAt <= at) this.#remove(open)',
    without: '{}',
    finding: /was reported, and event \d+ had ended it in time/,
  },
  'an end also removes what began after it': {
    file: 'src/inbox/memory/expectations.ts',
    fix: '&& open.beganAt <= at)',
    without: ')',
    from: 190,
    finding: /its expectation was neither ended nor reported/,
  },
  'what is overdue while the inbox is full is never handed over': {
    file: 'src/inbox/memory/expectations.ts',
    fix: 'else this.#wait(open, fullDelayMs)',
    without: '',
    from: 250,
    finding: /the expectation of event \d+ stays open/,
  },
  'the deadline is lost between the claim of an event and its handling': {
    file: 'src/inbox/memory/inbox.ts',
    fix: 'if (changes !== undefined) this.#expectations.apply(job.lane, changes)',
    without: '',
    finding: /its expectation was neither ended nor reported/,
  },
  'a file forgets an end that came first': {
    file: 'src/inbox/sqlite/statements.ts',
    fix: 'WHERE NOT EXISTS (SELECT 1 FROM inbox_expectation_end WHERE subject = ? AND ended_at >= ?)',
    without: "WHERE ? <> '' AND ? <> 0",
    finding: /was reported, and event \d+ had ended it in time/,
  },
  'an end also removes from a file what began after it': {
    file: 'src/inbox/sqlite/statements.ts',
    fix: 'WHERE subject = ? AND began_at <= ?',
    without: 'WHERE subject = ? AND ? > 0',
    finding: /its expectation was neither ended nor reported/,
  },
  'a file keeps a deadline that has ended': {
    file: 'src/inbox/sqlite/accepting.ts',
    fix: 'this.#sql.removeEnded.run(subject, at)',
    without: '',
    finding: /was reported, and event \d+ had ended it in time/,
  },
  'a file stores an event without its deadline': {
    file: 'src/inbox/sqlite/accepting.ts',
    fix: 'if (changes !== undefined) this.#apply(changes)',
    without: '',
    finding: /its expectation was neither ended nor reported/,
  },
  'in a strict order, a retry is overtaken': {
    file: 'src/inbox/memory/engine.ts',
    fix: 'if (this.#isStrict) return this.#lanes.done()',
    without: '',
    from: 180,
    finding: /began while event \d+ before it waited for its retry/,
  },
  'in a strict order, a lane goes on after a retry': {
    file: 'src/inbox/sql/lane-runner.ts',
    fix: "this.#options.host.order === 'strict' && (event.kind === 'retry' || event.kind === 'release')",
    without: 'false',
    finding: /began while event \d+ before it waited for its retry/,
  },
  'deadlines that passed while no process ran are never checked': {
    file: 'src/inbox/sql/upkeep.ts',
    fix: 'this.#tasks.deadlines.start(0)',
    without: '',
    finding: /the expectation of event \d+ stays open/,
  },
}

const project = join(import.meta.dirname, '../..')
const tsx = join(project, 'node_modules/tsx/dist/esm/index.mjs')

/** Plays seeds with a copy of the source that lacks a fix, until one fails. Returns what is printed. */
async function playWithout({ file, fix, without, workers = false, from = 1 }: Fault): Promise<string> {
  const copy = await temporaryFolder()
  for (const path of ['package.json', 'tsconfig.json', 'src', 'test/support/seeded.ts', 'test/simulation'])
    await cp(join(project, path), join(copy, path), { recursive: true })
  await symlink(join(project, 'node_modules'), join(copy, 'node_modules'))
  const source = await readFile(join(copy, file), 'utf8')
  expect(source.split(fix), 'the line of the fix has changed').toHaveLength(2)
  await writeFile(join(copy, file), source.replace(fix, without))
  // A fault of a file shows in no other setup.
  const setup = file.includes('/sql') ? ['--setup', 'sqlite'] : []
  const options = [
    '--until-failure',
    '--from',
    `${from}`,
    '--seeds',
    '1000',
    ...setup,
    ...(workers ? ['--workers'] : []),
  ]
  const program = ['--import', tsx, 'test/simulation/run.ts', ...options]
  const run = promisify(execFile)(process.execPath, program, { cwd: copy })
  return run.then(
    () => 'no seed failed',
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  )
}

describe('the simulation finds, within 1,000 seeds, that', () => {
  test.each(Object.entries(faults))('%s', async (_, fault) => {
    expect(await playWithout(fault)).toMatch(fault.finding)
  })
})
