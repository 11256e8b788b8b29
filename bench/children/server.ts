import { answerWith } from '../child.ts'
import { contenders, postgresOverExpress, slowHandlers } from '../contenders/index.ts'
import { listen } from '../contenders/listen.ts'
import { type Tally, tallyOf } from '../tally.ts'

export type ServerQuestion = { readonly ask: 'port' } | { readonly ask: 'work'; readonly expected: number }

/** The work of the server since the question for its port. */
export interface Work extends Tally {
  /** Microseconds of CPU, handlers included. */
  readonly cpu: number
}

const contender = [...contenders, postgresOverExpress, slowHandlers].find(({ name }) => name === process.argv[2])
if (!contender) throw new Error(`No contender is named ${process.argv[2]}`)
const port = await listen(await contender.server())

let cpuBefore = process.cpuUsage()

async function work(expected: number): Promise<Work> {
  const tally = await tallyOf(expected)
  const { user, system } = process.cpuUsage(cpuBefore)
  return { ...tally, cpu: user + system }
}

answerWith<ServerQuestion>(async (question) => {
  if (question.ask === 'work') return work(question.expected)
  cpuBefore = process.cpuUsage()
  return port
})
