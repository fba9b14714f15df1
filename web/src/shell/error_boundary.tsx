import { Component, type ReactNode } from "react";
import { Button, Empty } from "../design/parts";

/** Keeps an error in one page from taking the frame with it. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <Empty title="This page failed" action={<Button icon="refresh" onClick={() => this.setState({ failed: false })}>Try again</Button>}>
        An error in the page itself, not in your data. The browser's console has the details.
      </Empty>
    );
  }
}
