import * as duplicates from './duplicates.ts'
import * as failures from './failures.ts'
import * as forgeries from './forgeries.ts'
import { nothingSensitive } from './logs.ts'

/**
 * The scenarios that a receiver has to pass, each over a real socket. A scenario rejects when the receiver fails it.
 */
export const scenarios = { ...duplicates, ...failures, ...forgeries, nothingSensitive }

export type Scenario = keyof typeof scenarios
