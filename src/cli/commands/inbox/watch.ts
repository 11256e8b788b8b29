import { setTimeout as pause } from 'node:timers/promises'
import type { DeadLetter } from '../../../inbox/reading.ts'
import { ageText } from '../../../internal/duration.ts'
import { plain, shellQuoted } from '../../shared/text.ts'
import type { ActionContext, InboxAction } from './action.ts'
import { explained } from './explain.ts'
import { type FailedRun, type News, NewsReader } from './news.ts'
import { deadLetterErrors, deadLetterJson, errorLines, inOneLine } from './print.ts'
import type { InboxCounts } from './stats.ts'

/** Minimum delay between checks (ms). */
const delayMs = 1_000

/** Delay after a slow check, in multiples of its duration, so checks don't slow the inbox down. */
const pauseFactor = 4

/** Longest silence without a terminal (ms). Writing a line detects that the reader is gone. */
const maxSilenceMs = 60_000

export const watch: InboxAction = {
  help: ['watch', 'shows the counts, and each failure and dead letter when it appears, until Ctrl-C'],
  flags: [],
  serves: true,
  async run(context) {
    const { inbox, target, screen } = context
    const reader = new NewsReader(inbox)
    const show = printer(context)
    let isUnreachable = false
    let isFirst = true
    while (!screen.signal.aborted) {
      const startedAt = performance.now()
      try {
        show(await reader.read())
        isUnreachable = false
      } catch (error) {
        // An outage ends the command only before anything was shown.
        if (isFirst) throw error
        const reason = explained(error, target)
        if (!isUnreachable)
          screen.note(`trying again: ${plain(reason instanceof Error ? reason.message : String(reason))}`)
        isUnreachable = true
      }
      isFirst = false
      const tookMs = performance.now() - startedAt
      await pause(Math.max(delayMs, pauseFactor * tookMs), undefined, { signal: screen.signal }).catch(() => {})
    }
    screen.draw?.([])
    return 0
  },
}

/** Prints news as JSON, as lines, or at the bottom of a terminal. */
function printer({ values, screen }: ActionContext): (news: News) => void {
  let last = ''
  let lastAt = 0
  return ({ counts, failures, deadLetters }) => {
    for (const failure of failures) values.json ? screen.json(failureJson(failure)) : screen.print(failureText(failure))
    for (const deadLetter of deadLetters)
      values.json ? screen.json({ deadLetter: deadLetterJson(deadLetter) }) : screen.print(deadLetterText(deadLetter))
    if (screen.draw !== undefined && !values.json) return screen.draw([countsText(counts), 'Press Ctrl-C to stop.'])
    // Without a terminal, print only changes.
    const { oldestWaitingMs: _, oldestWaitingAt: __, ...numbers } = counts
    const at = new Date()
    if (last === JSON.stringify(numbers) && at.getTime() < lastAt + maxSilenceMs) return
    last = JSON.stringify(numbers)
    lastAt = at.getTime()
    if (values.json) screen.json({ counts: { at, ...counts } })
    else screen.print(`${at.toISOString()}  ${countsText(counts)}`)
  }
}

function countsText({ waiting, running, retrying, deadLetters, expected, oldestWaitingMs }: InboxCounts): string {
  const oldest = oldestWaitingMs === undefined ? '' : ` (the oldest for ${ageText(oldestWaitingMs)})`
  return [
    `waiting ${waiting}${oldest}`,
    ...(running === undefined ? [] : [`running ${running}`]),
    `retrying ${retrying}`,
    `dead letters ${deadLetters}`,
    ...(expected === undefined ? [] : [`expected ${expected}`]),
  ].join(', ')
}

const failureJson = ({ event: { key, type, mediaId, state }, attempt }: FailedRun) => ({
  failedAttempt: { key, type, mediaId, state, ...attempt },
})

const failureText = ({ event: { key, type, mediaId }, attempt: { number, failedAt, failures } }: FailedRun): string =>
  [
    `${failedAt.toISOString()}  failed in attempt ${number}: ${plain(type)}, media ${inOneLine(mediaId)}, key ${shellQuoted(key)}`,
    ...errorLines(failures),
  ].join('\n')

function deadLetterText(deadLetter: DeadLetter): string {
  const { key, event, diedAt } = deadLetter
  const what = event === undefined ? 'unreadable delivery' : `${plain(event.type)}, media ${inOneLine(event.mediaId)}`
  const line = `${diedAt.toISOString()}  dead letter: ${what}, key ${shellQuoted(key)}`
  return [line, ...deadLetterErrors(deadLetter)].join('\n')
}
