/** The question to ask where nothing listens. */
export const refusedHint = 'is the server running, and are the host and the port right?'

/** Adds the question to a message which says that a connection was refused. */
export const withRefusedHint = (message: string): string =>
  message.includes('ECONNREFUSED') && !message.includes(refusedHint) ? `${message} (${refusedHint})` : message
