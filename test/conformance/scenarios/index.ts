import * as duplicates from './duplicates.ts'
import * as failures from './failures.ts'
import * as forgeries from './forgeries.ts'
import { nothingSensitive } from './logs.ts'

/** What a receiver has to get right, each over a real socket. A scenario rejects when the receiver does not. */
export const scenarios = { ...duplicates, ...failures, ...forgeries, nothingSensitive }

export type Scenario = keyof typeof scenarios
