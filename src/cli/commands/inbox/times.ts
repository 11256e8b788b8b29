import { ageText } from '../../../internal/duration.ts'

export function time(at: Date): string {
  const sinceMs = Date.now() - at.getTime()
  const distance = sinceMs < 0 ? `in ${ageText(-sinceMs)}` : `${ageText(sinceMs)} ago`
  return `${at.toISOString()} (${distance})`
}
